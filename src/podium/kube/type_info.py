"""Makes msgspec read the fields of all types there are, before two threads decode them.

msgspec reads a type's fields when it decodes the type for the first time. A second thread that comes to the same type
at that moment finds it half read, and the process crashes.
"""

from collections.abc import Iterator

import msgspec


def read_types() -> None:
    """To be called before a second thread decodes objects."""
    for each in _below(msgspec.Struct):
        try:
            msgspec.json.Decoder(each)
        except Exception:  # noqa: S112  whatever the author of a type wrote: what cannot be read is decoded by no thread
            continue


def _below(type_: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    for each in type_.__subclasses__():
        yield each
        yield from _below(each)
