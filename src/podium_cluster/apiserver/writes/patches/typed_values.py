"""Implements the operations on typed values that server-side apply is made of: fields of, comparison, merge, removal.

A leaf is a scalar, an atomic list or map, or an empty one: it is owned, compared and replaced as a whole. Entries
of lists declared as maps or sets are addressed by their keys or value instead of their index. A value of a type
that the schema leaves open is taken as it comes: maps are merged key by key, lists are leaves.

`MergeType` is what patches ask of a schema: the form of each value, how lists are identified, how fields are merged.
The schema's own types answer this protocol, so the patch functions stay pure and can be tested with types written
by hand.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import Any, Final, Literal, NamedTuple, Protocol

from podium_cluster.apiserver.writes.patches.json_patch import same
from podium_cluster.apiserver.writes.patches.managed_fields import Path, Paths, field_step, key_step, value_step

Form = Literal["struct", "map", "list", "string", "number", "boolean", "scalar", "anything"]


class MergeType(Protocol):
    """The type of one value, as the field that holds it declares it."""

    @property
    def form(self) -> Form: ...

    @property
    def atomic(self) -> bool:
        """Owned and replaced as a whole: lists unless declared as sets or maps, and some structs and maps."""
        ...

    @property
    def keys(self) -> tuple[str, ...]:
        """The fields that identify an entry of a list; a list with neither keys nor `atomic` is a set of scalars."""
        ...

    @property
    def strategies(self) -> tuple[str, ...]:
        """How strategic merge treats the field: merge, replace, retainKeys."""
        ...

    @property
    def merge_key(self) -> str:
        """What identifies an entry of the list in a strategic merge."""
        ...

    @property
    def default(self) -> Any: ...

    def field(self, name: str) -> MergeType | None:
        """The type of a struct's field; None when it has no such field."""
        ...

    @property
    def element(self) -> MergeType | None:
        """The type of a map's values or a list's entries."""
        ...


class _Absent:
    pass


ABSENT: Final = _Absent()


class BadValueError(Exception):
    """A value that does not fit its type; the text is the API server's."""


class TypedComparison(NamedTuple):
    removed: Paths
    modified: Paths
    added: Paths

    def without(self, reset: Paths) -> TypedComparison:
        return TypedComparison(*(without_below(paths, reset) for paths in self))


def without_below(paths: Paths, roots: Paths) -> Paths:
    """The paths outside every subtree that begins at one of `roots`."""
    return frozenset(path for path in paths if not any(path[: len(root)] == root for root in roots))


def is_map(value: Any, kind: MergeType | None) -> bool:
    return isinstance(value, dict) and (kind is None or kind.form in ("struct", "map", "anything"))


def map_field(kind: MergeType | None, name: str) -> tuple[MergeType | None, bool]:
    """The type of a map's value, and whether the schema declares this very name."""
    if kind is None or kind.form == "anything":
        return None, False
    if kind.form == "map":
        return kind.element, False
    found = kind.field(name)
    return (found, True) if found is not None else (kind.element, False)


def list_step(kind: MergeType, item: Any) -> str:
    """What identifies an entry of a list that is declared as a map or a set."""
    if not kind.keys:
        if isinstance(item, dict):
            raise BadValueError("associative list without keys has an element that's a map type")
        if isinstance(item, list):
            raise BadValueError("not supported: associative list with lists as elements")
        if item is None:
            raise BadValueError("associative list without keys has an element that's an explicit null")
        return value_step(item)
    if item is None:
        raise BadValueError("associative list with keys may not have a null element")
    if not isinstance(item, dict):
        raise BadValueError("associative list with keys may not have non-map elements")
    found = {}
    for key in kind.keys:
        if key in item:
            found[key] = item[key]
        elif (default := _key_default(kind, key)) is not None:
            found[key] = default
    if not found:
        names = " ".join(f'"{key}"' for key in kind.keys)
        raise BadValueError(
            f"associative list with keys has an element that omits all key fields [{names}]"
            " (and doesn't have default values for any key fields)"
        )
    return key_step(found)


def _key_default(kind: MergeType, key: str) -> Any:
    field = kind.element.field(key) if kind.element is not None else None
    return None if field is None else field.default


def is_larger(value: Any, most: int) -> bool:
    """Whether there are more values than that in it, however deep."""
    left, count = [value], 0
    while left and count <= most:
        found = left.pop()
        inner = found.values() if isinstance(found, dict) else found if isinstance(found, list) else ()
        count += len(inner)
        left += inner
    return count > most


def associative(value: Any, kind: MergeType | None) -> bool:
    return isinstance(value, list) and kind is not None and kind.form == "list" and not kind.atomic


def fields_of(value: Any, kind: MergeType | None) -> Paths:
    """Every field that writing this value claims."""
    found: set[Path] = set()
    _fields(value, kind, (), found)
    found.discard(())
    return frozenset(found)


def _fields(value: Any, kind: MergeType | None, path: Path, found: set[Path]) -> None:
    if kind is not None and kind.atomic:
        found.add(path)
    elif is_map(value, kind):
        for name, inner in value.items():
            inner_kind, declared = map_field(kind, name)
            below = (*path, field_step(name))
            _fields(inner, inner_kind, below, found)
            if inner is None or inner == {} or not declared:
                found.add(below)
    elif associative(value, kind):
        assert kind is not None
        steps = [list_step(kind, item) for item in value]
        times = Counter(steps)
        for step, item in zip(steps, value, strict=True):
            found.add((*path, step))
            if times[step] == 1:
                _fields(item, kind.element, (*path, step), found)
    elif value is not None or kind is None or kind.form not in ("struct", "map", "list"):
        found.add(path)


def compare(old: Any, new: Any, kind: MergeType | None) -> TypedComparison:
    """Which fields differ between two values of one type."""
    comparer = _Comparer()
    comparer.walk(old, new, kind, ())
    return TypedComparison(
        *(frozenset(paths - {()}) for paths in (comparer.removed, comparer.modified, comparer.added))
    )


class _Comparer:
    def __init__(self) -> None:
        self.removed: set[Path] = set()
        self.modified: set[Path] = set()
        self.added: set[Path] = set()

    def walk(self, old: Any, new: Any, kind: MergeType | None, path: Path) -> None:
        if _leaf(old, new, kind):
            if old is ABSENT:
                self.added.add(path)
            elif new is ABSENT:
                self.removed.add(path)
            elif not same(old, new):
                self.modified.add(path)
            return
        if _any_map(old, new):
            old_items, new_items = _as_map(old), _as_map(new)
            for name in {**old_items, **new_items}:
                inner, _ = map_field(kind, name)
                always: Any = {} if inner is not None and inner.form == "struct" and inner.default == {} else ABSENT
                self.walk(old_items.get(name, always), new_items.get(name, always), inner, (*path, field_step(name)))
        else:
            assert kind is not None
            self._lists(_as_list(old), _as_list(new), kind, path)
        if old is ABSENT:
            self.added.add(path)
        elif new is ABSENT:
            self.removed.add(path)

    def _lists(self, old: list[Any], new: list[Any], kind: MergeType, path: Path) -> None:
        old_items, new_items = _by_step(old, kind), _by_step(new, kind)
        for step in {**old_items, **new_items}:
            before, after = old_items.get(step, []), new_items.get(step, [])
            below = (*path, step)
            if len(before) <= 1 and len(after) <= 1:
                self.walk(before[0] if before else ABSENT, after[0] if after else ABSENT, kind.element, below)
            elif len(before) >= 2 and len(after) >= 2:
                if not same(before, after):
                    self.modified.add(below)
            elif len(before) >= 2:
                if after:
                    self.walk(ABSENT, after[0], kind.element, below)
                self.removed.add(below)
            else:
                if before:
                    self.walk(before[0], ABSENT, kind.element, below)
                self.added.add(below)


def merge(old: Any, new: Any, kind: MergeType | None) -> Any:
    """`new` laid over `old`; ABSENT when nothing is left."""
    if _leaf(old, new, kind):
        return old if new is ABSENT else new
    if _any_map(old, new):
        old_items, new_items = _as_map(old), _as_map(new)
        merged = {}
        for name in {**old_items, **new_items}:
            inner, _ = map_field(kind, name)
            value = merge(old_items.get(name, ABSENT), new_items.get(name, ABSENT), inner)
            if value is not ABSENT:
                merged[name] = value
        return merged or ABSENT
    assert kind is not None
    return _merge_lists(_as_list(old), _as_list(new), kind) or ABSENT


def _merge_lists(old: list[Any], new: list[Any], kind: MergeType) -> list[Any]:
    """Entries of the old list stay where they are relative to the shared ones, which take the new list's order."""
    old_steps, new_steps = [list_step(kind, item) for item in old], [list_step(kind, item) for item in new]
    old_items = {step: items[0] if len(items) == 1 else ABSENT for step, items in _by_step(old, kind).items()}
    new_items = dict(zip(new_steps, new, strict=True))
    shared = deque(step for step in new_steps if step in old_items)
    merged: list[Any] = []
    done: set[str] = set()
    at_old = at_new = 0
    while at_old < len(old) or at_new < len(new):
        if at_old < len(old):
            step = old_steps[at_old]
            if at_new < len(new) and step == new_steps[at_new]:
                at_old += 1
            elif at_new < len(new) and step in new_items and shared and shared[0] != step:
                at_old += 1
                continue
            elif step not in new_items:
                merged.append(merge(old[at_old], ABSENT, kind.element))
                at_old += 1
                continue
            elif step in done:
                at_old += 1
        if at_new < len(new):
            step = new_steps[at_new]
            done.add(step)
            merged.append(merge(old_items.get(step, ABSENT), new_items[step], kind.element))
            at_new += 1
            if shared and shared[0] == step:
                shared.popleft()
    return [item for item in merged if item is not ABSENT]


def remove(value: Any, paths: Paths, kind: MergeType | None) -> Any:
    """The value without the fields at these paths; what becomes empty becomes null, to be dropped at the end."""
    tree: dict[str, Any] = {}
    for path in paths:
        node = tree
        for step in path[:-1]:
            node = node.setdefault(step, {})
        node.setdefault(path[-1], {})[""] = True
    return _remove(value, tree, kind)


def _remove(value: Any, tree: dict[str, Any], kind: MergeType | None) -> Any:
    if isinstance(value, dict | list) and kind is not None and kind.atomic:
        return None
    if is_map(value, kind):
        left = {}
        for name, inner in value.items():
            node = tree.get(field_step(name))
            if node is None:
                left[name] = inner
            elif "" not in node:
                left[name] = _remove(inner, node, map_field(kind, name)[0])
        return left or None
    if associative(value, kind):
        assert kind is not None
        left_items = []
        for item in value:
            node = tree.get(list_step(kind, item))
            if node is None:
                left_items.append(item)
            elif "" not in node:
                left_items.append(_remove(item, node, kind.element))
        return left_items or None
    return None if isinstance(value, list) else value


def with_named_fields(paths: Paths, kind: MergeType | None) -> Paths:
    """The paths and every declared field above them: a struct is a member when one of its fields is."""
    found = set(paths)
    for path in paths:
        current = kind
        for at, step in enumerate(path[:-1]):
            if step.startswith("f:"):
                current, declared = map_field(current, step[2:])
                if declared:
                    found.add(path[: at + 1])
            else:
                current = current.element if current is not None else None
    return frozenset(found)


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_nulls(inner) for name, inner in value.items() if inner is not None}
    return [without_nulls(inner) for inner in value if inner is not None] if isinstance(value, list) else value


def _leaf(old: Any, new: Any, kind: MergeType | None) -> bool:
    if kind is not None and kind.atomic:
        return True
    if _any_map(old, new) and (kind is None or kind.form in ("struct", "map", "anything")):
        return not (_as_map(old) or _as_map(new)) or _mixed(old, new, dict)
    if associative(old, kind) or associative(new, kind):
        return not (_as_list(old) or _as_list(new)) or _mixed(old, new, list)
    return True


def _mixed(old: Any, new: Any, form: type) -> bool:
    return any(value is not ABSENT and value is not None and not isinstance(value, form) for value in (old, new))


def _any_map(old: Any, new: Any) -> bool:
    return isinstance(old, dict) or isinstance(new, dict)


def _as_map(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _by_step(items: list[Any], kind: MergeType) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for item in items:
        found.setdefault(list_step(kind, item), []).append(item)
    return found
