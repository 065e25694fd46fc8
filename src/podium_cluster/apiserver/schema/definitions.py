"""Validates CustomResourceDefinitions: their names, versions and schemas, in the words of kube-apiserver.

What is the same in all versions (schema, columns, subresources) counts once there, under `spec.validation` and its like
instead of `spec.versions[…]`; messages name fields accordingly.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from kubecel.names import dns_subdomain_errors
from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import Cause, immutable, invalid_value, not_supported, required, shown
from podium_cluster.apiserver.schema.rules.definition_rules import rule_problems
from podium_cluster.apiserver.schema.structural import structural_problems

Causes = Iterator[Cause]

_LABEL: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_LABEL_RULE: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_SIMPLE_PATH: Final = "must be a simple json path starting with ."
_APPROVAL: Final = "api-approved.kubernetes.io"


def definition_causes(definition: JsonObject, known: Sequence[JsonObject] = ()) -> list[Cause]:
    """What is wrong with a definition, old or new; the rules of `known` schemas were checked before."""
    spec = definition.get("spec", {})
    return [
        *_name_problems(definition.get("metadata", {}), spec),
        *_spec_problems(spec, known),
        *_stored_version_problems(spec, definition.get("status", {}).get("storedVersions")),
        *_approval_problems(definition.get("metadata", {}), spec),
    ]


def definition_update_causes(new: JsonObject, old: JsonObject) -> list[Cause]:
    """What is wrong with the next state of a definition: also what may never change."""
    causes = definition_causes(new, [_schema_of(version) or {} for version in old["spec"].get("versions") or ()])
    for path in (("group",), ("scope",), ("names", "plural"), ("names", "kind")):
        before, after = old["spec"], new["spec"]
        for step in path:
            before, after = before.get(step, ""), after.get(step, "")
        if before != after:
            causes = [cause for cause in causes if cause.field != "metadata.name"]
            causes.append(immutable(".".join(("spec", *path)), after))
    return causes


def _name_problems(metadata: JsonObject, spec: JsonObject) -> Causes:
    wanted = f"{spec.get('names', {}).get('plural', '')}.{spec.get('group', '')}"
    if metadata.get("name") and metadata["name"] != wanted:
        yield invalid_value("metadata.name", metadata["name"], 'must be spec.names.plural+"."+spec.group')


def _spec_problems(spec: JsonObject, known: Sequence[JsonObject]) -> Causes:
    group = spec.get("group", "")
    if not group:
        yield required("spec.group")
    elif errors := dns_subdomain_errors(group):
        yield invalid_value("spec.group", group, errors[0])
    elif "." not in group:
        yield invalid_value("spec.group", group, "should be a domain with at least one dot")
    if not spec.get("scope"):
        yield required("spec.scope")
    elif spec["scope"] not in ("Cluster", "Namespaced"):
        yield not_supported("spec.scope", spec["scope"], ("Cluster", "Namespaced"))
    if spec.get("preserveUnknownFields"):
        message = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        )
        yield invalid_value("spec.preserveUnknownFields", True, message)
    yield from _version_problems(spec.get("versions") or [])
    yield from _part_problems(spec.get("versions") or [], known)
    yield from _names_problems(spec.get("names", {}))
    yield from _conversion_problems(spec.get("conversion") or {})


def _version_problems(versions: list[JsonObject]) -> Causes:
    names = [version.get("name", "") for version in versions]
    for index, version in enumerate(versions):
        if _schema_of(version) is None:
            yield required(f"spec.versions[{index}].schema.openAPIV3Schema")
        if not _LABEL.fullmatch(names[index]):
            yield invalid_value(f"spec.versions[{index}].name", names[index], _LABEL_RULE)
    if len(set(names)) != len(names):
        yield _about_versions(versions, "must contain unique version names")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        yield _about_versions(versions, "must have exactly one version marked as storage version")
    if names and not _LABEL.fullmatch(names[0]):
        yield invalid_value("spec.version", names[0], _LABEL_RULE)


def _about_versions(versions: list[JsonObject], message: str) -> Cause:
    """The versions as they are shown in a message: what is the same in all of them stands elsewhere."""
    shared = ("Schema", "Subresources", "AdditionalPrinterColumns", "SelectableFields")
    summed = [
        {
            "Name": version.get("name", ""),
            "Served": version.get("served", False),
            "Storage": version.get("storage", False),
            "Deprecated": version.get("deprecated", False),
            "DeprecationWarning": version.get("deprecationWarning"),
            **dict.fromkeys(shared),
        }
        for version in versions
    ]
    return Cause("FieldValueInvalid", f"Invalid value: {shown(summed)}: {message}", "spec.versions")


def _schema_of(version: JsonObject) -> JsonObject | None:
    found: JsonObject | None = (version.get("schema") or {}).get("openAPIV3Schema")
    return found


def _part_problems(versions: list[JsonObject], known: Sequence[JsonObject]) -> Causes:
    for index, version, field in _once(versions, "schema", "spec.validation"):
        schema = _schema_of(version)
        if schema is not None:
            where = f"{field or f'spec.versions[{index}].schema'}.openAPIV3Schema"
            wrong = list(structural_problems(schema, where))
            yield from wrong
            if schema not in known:
                yield from rule_problems(schema, where, structural=not wrong)
    for index, version, field in _once(versions, "additionalPrinterColumns", "spec.additionalPrinterColumns"):
        where = field or f"spec.versions[{index}].additionalPrinterColumns"
        for at, column in enumerate(version.get("additionalPrinterColumns") or ()):
            yield from _column_problems(column, f"{where}[{at}]")
    for index, version, field in _once(versions, "subresources", "spec.subresources"):
        where = field or f"spec.versions[{index}].subresources"
        scale = (version.get("subresources") or {}).get("scale")
        if scale is not None:
            yield from _scale_problems(scale, f"{where}.scale")


def _once(versions: list[JsonObject], part: str, field: str) -> Iterator[tuple[int, JsonObject, str]]:
    """Each version, or only one where all say the same; with the field that then stands for all."""
    same = all(version.get(part) == versions[0].get(part) for version in versions)
    for index, version in enumerate(versions[:1] if same else versions):
        yield index, version, field if same else ""


def _column_problems(column: JsonObject, field: str) -> Causes:
    if not column.get("name"):
        yield required(f"{field}.name")
    if not column.get("type"):
        yield required(f"{field}.type", f"must be one of {','.join(_COLUMN_TYPES)}")
    elif column["type"] not in _COLUMN_TYPES:
        yield invalid_value(f"{field}.type", column["type"], f"must be one of {','.join(_COLUMN_TYPES)}")
    yield from _path_problems(column.get("jsonPath", ""), f"{field}.JSONPath")


def _scale_problems(scale: JsonObject, field: str) -> Causes:
    for name, under in (("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")):
        path = scale.get(name, "")
        wrong = list(_path_problems(path, f"{field}.{name}"))
        yield from wrong
        if not wrong and not path.startswith(f"{under}."):
            yield invalid_value(f"{field}.{name}", path, f"should be a json path under {under}")
    path = scale.get("labelSelectorPath")
    if path:
        wrong = list(_path_problems(path, f"{field}.labelSelectorPath"))
        yield from wrong
        if not wrong and not path.startswith((".spec.", ".status.")):
            yield invalid_value(
                f"{field}.labelSelectorPath", path, "should be a json path under either .spec or .status"
            )


def _path_problems(path: str, field: str) -> Causes:
    if not path:
        yield required(field)
    elif not path.startswith("."):
        yield invalid_value(field, path, _SIMPLE_PATH)


def _names_problems(names: JsonObject) -> Causes:
    field = "spec.names"
    for name in ("plural", "singular"):
        yield from _label_problems(names.get(name, ""), f"{field}.{name}")
    for name in ("kind", "listKind"):
        value = names.get(name, "")
        for cause in _label_problems(value.lower(), f"{field}.{name}"):
            if cause.reason == "FieldValueRequired":
                yield cause
            else:
                yield invalid_value(
                    cause.field, value, f"may have mixed case, but should otherwise match: {_LABEL_RULE}"
                )
    for index, short in enumerate(names.get("shortNames") or ()):
        yield from _label_problems(short, f"{field}.shortNames[{index}]")
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        yield invalid_value(f"{field}.listKind", names["listKind"], "kind and listKind may not be the same")
    for index, category in enumerate(names.get("categories") or ()):
        yield from _label_problems(category, f"{field}.categories[{index}]")


def _label_problems(value: str, field: str) -> Causes:
    if not value:
        yield required(field)
    elif not _LABEL.fullmatch(value):
        yield invalid_value(field, value, _LABEL_RULE)


def _conversion_problems(conversion: JsonObject) -> Causes:
    strategy = conversion.get("strategy")
    if strategy == "Webhook":
        if not (conversion.get("webhook") or {}).get("clientConfig"):
            yield required("spec.conversion.webhookClientConfig", "required when strategy is set to Webhook")
        if not (conversion.get("webhook") or {}).get("conversionReviewVersions"):
            yield required("spec.conversion.conversionReviewVersions")
        else:
            message = "this server converts with strategy None only"
            yield invalid_value("spec.conversion.strategy", strategy, message)
    elif strategy and strategy != "None":
        yield not_supported("spec.conversion.strategy", strategy, ("None", "Webhook"))


def _stored_version_problems(spec: JsonObject, stored: list[str] | None) -> Causes:
    field = "status.storedVersions"
    versions = spec.get("versions") or []
    names = [version.get("name") for version in versions]
    if not stored:
        yield invalid_value(field, stored, "must have at least one stored version")
        return
    for index, name in enumerate(stored):
        if name not in names:
            message = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {name} and "
                f"removes {name} from {field}"
            )
            yield invalid_value(f"{field}[{index}]", name, message)
    for version in versions:
        if version.get("storage") and version.get("name") not in stored:
            yield invalid_value(field, stored, f"must have the storage version {version.get('name')}")


def _approval_problems(metadata: JsonObject, spec: JsonObject) -> Causes:
    group = spec.get("group", "")
    if group.endswith((".k8s.io", ".kubernetes.io")) and not (metadata.get("annotations") or {}).get(_APPROVAL):
        message = (
            f'protected groups must have approval annotation "{_APPROVAL}", '
            "see https://github.com/kubernetes/enhancements/pull/1111"
        )
        yield required(f"metadata.annotations[{_APPROVAL}]", message)
