"""Checks what the types cannot say: that quantities can be read and that selectors can be compiled.

The API server has checked its own objects, so this is for objects from elsewhere: files and requests. The walk
follows the types, and only into fields that can hold a quantity or a selector.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from msgspec import Struct, inspect, structs

from kubecel.quantity import QuantityError, parse
from podium.kube.affinity import NodeSelector, PreferredSchedulingTerm
from podium.kube.meta import LabelSelector
from podium.kube.selector import (
    SelectorError,
    compile_label_selector,
    compile_preferred_terms,
    compile_strict_node_selector,
)


class Problem(NamedTuple):
    """Something wrong at a path such as `$.spec.containers[0].resources.requests.cpu`."""

    path: str
    message: str


_Check = Callable[[Any, str], Iterator[Problem]]


def problems(obj: Struct) -> Iterator[Problem]:
    """Every quantity and selector of the object that cannot be used."""
    check = _struct_check(type(obj))
    if check is not None:
        yield from check(obj, "$")


def _quantity(amount: Any, path: str) -> Iterator[Problem]:
    try:
        parse(amount)
    except QuantityError as error:
        yield Problem(path, str(error))


def _label_selector(selector: LabelSelector, path: str) -> Iterator[Problem]:
    try:
        compile_label_selector(selector)
    except SelectorError as error:
        yield Problem(path, str(error))


def _node_selector(selector: NodeSelector, path: str) -> Iterator[Problem]:
    try:
        compile_strict_node_selector(selector)
    except SelectorError as error:
        yield Problem(path, str(error))


def _preferred_term(term: PreferredSchedulingTerm, path: str) -> Iterator[Problem]:
    try:
        compile_preferred_terms((term,))
    except SelectorError as error:
        yield Problem(path, str(error).replace("[0]", "preference", 1))


_LEAVES: dict[type, _Check] = {
    LabelSelector: _label_selector,
    NodeSelector: _node_selector,
    PreferredSchedulingTerm: _preferred_term,
}


@lru_cache(maxsize=256)
def _struct_check(type_: type[Struct]) -> _Check | None:
    """The check of a struct type, None when nothing inside it needs one."""
    if type_ in _LEAVES:
        return _LEAVES[type_]
    found = inspect.type_info(type_)
    assert isinstance(found, inspect.StructType)
    names = {field.encode_name: field.name for field in structs.fields(type_)}
    wanted = [(names[f.encode_name], f.encode_name, c) for f in found.fields if (c := _check_for(f.type)) is not None]

    def check(obj: Any, path: str) -> Iterator[Problem]:
        for attribute, wire_name, inner in wanted:
            value = getattr(obj, attribute)
            if value is not None:
                yield from inner(value, f"{path}.{wire_name}")

    return check if wanted else None


def _check_for(type_: inspect.Type) -> _Check | None:
    match type_:
        case inspect.StructType():
            return _struct_check(type_.cls)
        case inspect.UnionType() if any(isinstance(option, inspect.FloatType) for option in type_.types):
            return _quantity
        case inspect.UnionType():
            return next((check for option in type_.types if (check := _check_for(option)) is not None), None)
        case inspect.DictType():
            return _each_value(_check_for(type_.value_type))
        case inspect.VarTupleType():
            return _each_item(_check_for(type_.item_type))
    return None


def _each_value(inner: _Check | None) -> _Check | None:
    def check(values: dict[str, Any], path: str) -> Iterator[Problem]:
        assert inner is not None
        for key, value in values.items():
            yield from inner(value, f"{path}.{key}" if key.isidentifier() else f'{path}["{key}"]')

    return check if inner is not None else None


def _each_item(inner: _Check | None) -> _Check | None:
    def check(items: tuple[Any, ...], path: str) -> Iterator[Problem]:
        assert inner is not None
        for index, item in enumerate(items):
            yield from inner(item, f"{path}[{index}]")

    return check if inner is not None else None
