"""Decodes request bodies (JSON, YAML or protobuf) and checks that they are about the kind that the path names."""

from typing import Any, Final

from podium.kube.documents import DocumentError, read_json, read_yaml
from podium_cluster.apiserver.errors import StatusError, bad_request, unsupported_media_type
from podium_cluster.apiserver.http import protobuf
from podium_cluster.apiserver.kind import Kind, Kinds

_JSON: Final = "application/json"
_YAML: Final = ("application/yaml", "application/x-yaml", "text/yaml")
_ACCEPTED: Final = ("application/json", "application/yaml", protobuf.MEDIA_TYPE)
_HEAD: Final = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'


def media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip()


def decoded(body: bytes, content_type: str, kind: Kind) -> dict[str, Any]:
    """The object in the body, for a request about `kind`. kube-apiserver takes a body without a type for JSON; here it
    is refused, because a web page can send one to a server on loopback without asking first."""
    media = media_type(content_type)
    if media == _JSON:
        value = _json(body, kind.kind)
    elif media in _YAML:
        value = _yaml(body)
    elif media == protobuf.MEDIA_TYPE:
        value = _protobuf(body, kind)
    else:
        raise unsupported_media_type(_ACCEPTED)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _unrecognized(kind.kind, f"json: cannot unmarshal {_go_kind(value)} into Go value of type {_HEAD}")
    return value


def check_kind(obj: dict[str, Any], kind: Kind, kinds: Kinds, *, expected: str = "", version: str = "") -> None:
    """Refuse an object of another kind; one that does not say what it is, is what it should be."""
    wanted_kind, wanted_version = expected or kind.kind, version or kind.api_version
    sent_kind, sent_version = obj.get("kind") or wanted_kind, obj.get("apiVersion") or wanted_version
    if sent_kind == wanted_kind and sent_version == wanted_version:
        return
    if not isinstance(sent_kind, str) or not isinstance(sent_version, str):
        raise bad_request("the object provided is unrecognized: kind and apiVersion must be strings")
    if sent_kind == wanted_kind and kinds.by_kind(sent_version, sent_kind) is not None:
        why = f"the API version in the data ({sent_version}) does not match the expected API version"
        raise bad_request(f"{why} ({wanted_version})")
    short = sent_version.rpartition("/")[2]
    if kinds.by_kind(sent_version, sent_kind.removesuffix("List")) is None:
        why = f'no kind "{sent_kind}" is registered for version "{sent_version}" in scheme "pkg/runtime/scheme.go:111"'
        raise bad_request(f'{sent_kind} in version "{short}" cannot be handled as a {wanted_kind}: {why}')
    group = kind.group.partition(".")[0] or "core"
    why = f"converting ({short}.{sent_kind}) to ({group}.{wanted_kind}): unknown conversion"
    raise bad_request(f'{sent_kind} in version "{short}" cannot be handled as a {wanted_kind}: {why}')


def _json(body: bytes, kind: str) -> Any:
    try:
        return read_json(body)
    except DocumentError as error:
        raise _unrecognized(kind, error.problem) from None


def _yaml(body: bytes) -> Any:
    try:
        return read_yaml(body)
    except DocumentError as error:
        where = f"line {error.line}: " if error.line else ""
        raise bad_request(f"error converting YAML to JSON: yaml: {where}{error.problem}") from None


def _protobuf(body: bytes, kind: Kind) -> Any:
    try:
        return protobuf.decode(body)
    except protobuf.ProtobufError as error:
        raise bad_request(f"the object provided is unrecognized (must be of type {kind.kind}): {error}") from None


def _unrecognized(kind: str, why: str) -> StatusError:
    problem = f"couldn't get version/kind; json parse error: {why}"
    return bad_request(f"the object provided is unrecognized (must be of type {kind}): {problem}")


def _go_kind(value: object) -> str:
    names = {list: "array", str: "string", bool: "bool", int: "number", float: "number"}
    return names.get(type(value), "null")
