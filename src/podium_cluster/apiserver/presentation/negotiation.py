"""Chooses the form of an answer: JSON as it is, as a table, or only the metadata.

The Accept header lists what the client can read, best first; the first of these that can be made is made. Everything
here is JSON: a client that insists on protobuf or YAML gets 406.
"""

from functools import lru_cache
from typing import Final, NamedTuple

from podium_cluster.apiserver.errors import StatusError
from podium_cluster.apiserver.errors import not_acceptable as no_such_form

_AVAILABLE: Final = "application/json, application/json;stream=watch"


class Form(NamedTuple):
    """`what` is "" for the object itself, or the kind that `as=` asks for; `version` is of meta.k8s.io."""

    what: str = ""
    version: str = "v1"


PLAIN: Final = Form()
_SHAPES: Final = {
    False: ("Table", "PartialObjectMetadata"),
    True: ("Table", "PartialObjectMetadataList"),
}


@lru_cache(maxsize=256)
def negotiate(accept: str, *, collection: bool, watch: bool = False) -> Form:
    """The form of an answer about one object or a collection; StatusError 406 where none will do."""
    if not accept:
        return PLAIN
    is_json = False
    for choice in accept.split(","):
        media, *parameters = [part.strip() for part in choice.split(";")]
        if media not in ("application/json", "*/*", "application/*"):
            continue
        options = dict(parameter.split("=", 1) for parameter in parameters if "=" in parameter)
        what = options.get("as", "")
        if not what:
            return PLAIN
        is_json = True
        if options.get("g") != "meta.k8s.io" or options.get("v") not in ("v1", "v1beta1"):
            continue
        shapes = ("Table", "PartialObjectMetadata") if watch else _SHAPES[collection]
        if what in shapes:
            return Form(what, options["v"])
    if is_json:
        raise no_such_form(("application/json",))
    raise not_acceptable(collection=collection)


@lru_cache(maxsize=256)
def wants_aggregated_discovery(accept: str) -> str:
    """The version of aggregated discovery that is wanted, "" for the old form."""
    for choice in accept.split(","):
        media, *parameters = [part.strip() for part in choice.split(";")]
        options = dict(parameter.split("=", 1) for parameter in parameters if "=" in parameter)
        if media not in ("application/json", "*/*", "application/*"):
            continue
        if options.get("g") == "apidiscovery.k8s.io" and options.get("as") == "APIGroupDiscoveryList":
            if options.get("v") in ("v2", "v2beta1"):
                return options["v"]
            continue
        if not options.get("as"):
            return ""
    return ""


def not_acceptable(*, collection: bool) -> StatusError:
    available = _AVAILABLE if collection else _AVAILABLE.partition(",")[0]
    message = f"406: Not Acceptable\n\nAvailable representations: {available}"
    return StatusError(406, "NotAcceptable", message, {})
