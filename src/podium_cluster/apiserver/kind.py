"""Describes a kind that the API serves, and keeps those served now, some of which come and go with CRDs.

A kind says where it is stored, what may be done with it, which fields it can be selected by and what it leaves out. The
built-in kinds have a file each in kinds/. Several kinds may share one place in the store: `events` of the core group
and of events.k8s.io are one collection in two forms, and so are the versions of a custom resource.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, partial
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import msgspec

ALL_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
ONLY_CREATE: Final = ("create",)
PART_VERBS: Final = ("get", "patch", "update")

FieldValues = tuple[str, ...]


class Fields(NamedTuple):
    """The fields a field selector may ask for, beside `metadata.name` and `metadata.namespace`, and what reads them.

    The values are taken out once, when an object is stored, so that a watch with a field selector never decodes an
    object it does not send. `values` reads the form that is stored, in the order of `names`; what is absent is empty.
    """

    names: tuple[str, ...] = ()
    values: Callable[[dict[str, Any]], FieldValues] = lambda _: ()


class Defaults(msgspec.Struct, frozen=True, eq=False):
    """What the types within a kind leave out, by type: "core.v1.PodSpec".

    `constants` are values of fields. `rules` are for what depends on other fields; each takes the value of one type,
    which has its constants already, and fills in what is missing. A kind names every type it contains: a deployment's
    defaults are those of a pod, and its own.
    """

    constants: Mapping[str, dict[str, Any]] = {}
    rules: Mapping[str, Callable[[dict[str, Any]], None]] = {}

    def __or__(self, other: "Defaults") -> "Defaults":
        return Defaults({**self.constants, **other.constants}, {**self.rules, **other.rules})


NO_FIELDS: Final = Fields()
NO_DEFAULTS: Final = Defaults()


class Subresource(msgspec.Struct, frozen=True):
    """A part of an object with a path of its own; `kind` is of what is read and written there, "" for the object's."""

    name: str
    kind: str = ""
    group: str = ""
    version: str = ""
    verbs: tuple[str, ...] = PART_VERBS


class Kind(msgspec.Struct, frozen=True, dict=True, cache_hash=True):
    """One kind in one version. `collection` names its place in the store where that is not its own; `stored_as` is the
    kind in whose form its objects are kept there."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    parts: tuple[Subresource, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    collection: str = ""
    custom: bool = False
    inert: bool = False
    """Whether nothing in an embedded cluster acts on it: it is stored, and that is all."""
    stored_as: "Kind | None" = None
    fields: Fields = NO_FIELDS
    defaults: Defaults = NO_DEFAULTS

    @cached_property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @cached_property
    def qualified(self) -> str:
        """As messages name the resource: "pods", "deployments.apps"."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @cached_property
    def qualified_kind(self) -> str:
        """As messages name the kind: "Pod", "Deployment.apps"."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @cached_property
    def stored_in(self) -> str:
        return self.collection or self.qualified

    @cached_property
    def subresources(self) -> tuple[str, ...]:
        return tuple(part.name for part in self.parts)

    @cached_property
    def has_status(self) -> bool:
        """Whether its status is written through a path of its own, and only there."""
        return "status" in self.subresources

    @cached_property
    def head(self) -> bytes:
        """What every encoded object of the kind begins with."""
        return msgspec.json.encode({"kind": self.kind, "apiVersion": self.api_version})[:-1] + b","

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str = "") -> str:
        """The URL path of the collection, of one object, or of a part of it."""
        steps = ["/apis" if self.group else "/api", self.api_version]
        if self.namespaced and namespace:
            steps += ["namespaces", quote(namespace, safe="")]
        steps.append(self.plural)
        if name is not None:
            steps.append(quote(name, safe=""))
        if subresource:
            steps.append(subresource)
        return "/".join(steps)

    def part(self, name: str) -> Subresource | None:
        for part in self.parts:
            if part.name == name:
                return part
        return None


class Kinds:
    """The kinds served now. Built-in ones stay; custom ones are replaced and removed by group and plural."""

    def __init__(self, kinds: Iterable[Kind] = ()) -> None:
        self._by_path: dict[tuple[str, str, str], Kind] = {}
        self._by_kind: dict[tuple[str, str], Kind] = {}
        self.generation = 0
        """Changes whenever a kind comes or goes, so that what is made from all of them can be kept until then."""
        for kind in kinds:
            self.add(kind)

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._by_path.values())

    def add(self, kind: Kind) -> None:
        self.generation += 1
        self._by_path[kind.group, kind.version, kind.plural] = kind
        self._by_kind[kind.api_version, kind.kind] = kind

    def remove(self, kind: Kind) -> None:
        self.generation += 1
        self._by_path.pop((kind.group, kind.version, kind.plural), None)
        self._by_kind.pop((kind.api_version, kind.kind), None)

    def by_path(self, group: str, version: str, plural: str) -> Kind | None:
        return self._by_path.get((group, version, plural))

    def by_kind(self, api_version: str, kind: str) -> Kind | None:
        return self._by_kind.get((api_version, kind))


STATUS: Final = Subresource("status")
SCALE: Final = Subresource("scale", "Scale", "autoscaling", "v1")


def built_in_kind(
    where: str,
    names: str,
    *parts: Subresource,
    short: str = "",
    categories: str = "",
    cluster: bool = False,
    verbs: tuple[str, ...] = ALL_VERBS,
    inert: bool = False,
    stored_as: Kind | None = None,
    fields: Fields = NO_FIELDS,
    defaults: Defaults = NO_DEFAULTS,
) -> Kind:
    """A kind of Kubernetes: `built_in_kind("apps/v1", "Deployment deployments", STATUS, short="deploy")`."""
    group, _, version = where.rpartition("/")
    kind, plural = names.split()
    return Kind(
        group,
        version,
        kind,
        plural,
        kind.lower(),
        not cluster,
        tuple(short.split()),
        tuple(categories.split()),
        parts,
        verbs,
        stored_as.stored_in if stored_as is not None else "",
        inert=inert,
        stored_as=stored_as,
        fields=fields,
        defaults=defaults,
    )


inert_kind: Final = partial(built_in_kind, inert=True)


def boolean_field(value: object) -> str:
    """A boolean as a field selector spells it."""
    return "true" if value else "false"
