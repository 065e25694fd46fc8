"""The records of built-in kinds, each of which stands in a file of its own."""

from collections.abc import Iterator

import pytest

from podium_cluster.apiserver.kind import Kind
from podium_cluster.apiserver.kinds import BUILT_IN, WORKLOAD_KINDS
from podium_cluster.apiserver.schema.fields import Struct, struct_named, type_names

KINDS = [*BUILT_IN, *WORKLOAD_KINDS]
OF_ANY_KIND = {name: constants for kind in KINDS for name, constants in kind.defaults.constants.items()}
RULES_OF_ANY_KIND = {name: rule for kind in KINDS for name, rule in kind.defaults.rules.items()}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.qualified)
def test_a_kind_brings_the_defaults_of_every_type_it_contains(kind: Kind) -> None:
    contained = {".".join(name.split(".")[-3:]) for name in types_within(kind)}
    constants, rules = kind.defaults.constants, kind.defaults.rules
    assert {name: constants.get(name) for name in contained & set(OF_ANY_KIND)} == {
        name: OF_ANY_KIND[name] for name in contained & set(OF_ANY_KIND)
    }
    assert {name: rules.get(name) for name in contained & set(RULES_OF_ANY_KIND)} == {
        name: RULES_OF_ANY_KIND[name] for name in contained & set(RULES_OF_ANY_KIND)
    }


def types_within(kind: Kind) -> set[str]:
    top = struct_named(type_names()[kind.group, kind.version, kind.kind])
    assert top is not None
    found: dict[str, Struct] = {}
    waiting = [top]
    while waiting:
        struct = waiting.pop()
        if struct.type_name not in found:
            found[struct.type_name] = struct
            waiting += _inner(struct)
    return set(found)


def _inner(struct: Struct) -> Iterator[Struct]:
    for field in struct.fields.values():
        inner = field.element if field.form in ("list", "map") else field
        if inner is not None and inner.struct is not None:
            yield inner.struct
