"""Makes msgspec read the fields of all Kubernetes objects, before two threads decode them.

msgspec reads a type's fields when it decodes the type for the first time. A second thread that comes to the same type
at that moment finds it half read, and the process crashes.
"""

from collections.abc import Iterator

import msgspec

from podium.kube import decode

_ROOM = decode.__name__.rpartition(".")[0]


def read_types() -> None:
    """To be called before a second thread decodes objects."""
    for each in _below(msgspec.Struct):
        if each.__module__.startswith(_ROOM):
            msgspec.json.Decoder(each)


def _below(type_: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    for each in type_.__subclasses__():
        yield each
        yield from _below(each)
