"""Checks names of labels and resources as Kubernetes does, with its sentence for each way to get them wrong.

A qualified name is `name` or `prefix/name`: the name 63 bytes of letters, digits, `-`, `_` and `.`, the prefix a DNS
subdomain. An extended resource must have a prefix, and not one of Kubernetes' own.
"""

import re

_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_DNS_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_SUBDOMAIN = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"

_BAD_NAME = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME}')"
)
_BAD_SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    f"and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_DNS_SUBDOMAIN}')"
)

_QUOTA_PREFIX = "requests."
_NATIVE = "kubernetes.io/"


def qualified_name_errors(value: str) -> list[str]:
    """What is wrong with a label key or resource name; empty when nothing is."""
    *prefixes, name = value.split("/")
    if len(prefixes) > 1:
        return [
            f"a valid label key {_BAD_NAME} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    errors = [f"prefix part {what}" for prefix in prefixes for what in _subdomain_errors(prefix)]
    if not name:
        errors.append("name part must be non-empty")
    elif len(name.encode()) > 63:
        errors.append("name part must be no more than 63 bytes")
    if not re.fullmatch(_NAME, name):
        errors.append(f"name part {_BAD_NAME}")
    return errors


def is_extended_resource_name(name: str) -> bool:
    """Whether a resource is one that a device plugin or an extender brings, such as `example.com/gpu`."""
    if "/" not in name or _NATIVE in name or name.startswith(_QUOTA_PREFIX):
        return False
    return not qualified_name_errors(_QUOTA_PREFIX + name)


def _subdomain_errors(prefix: str) -> list[str]:
    if not prefix:
        return ["must be non-empty"]
    errors = ["must be no more than 253 bytes"] if len(prefix.encode()) > 253 else []
    if not re.fullmatch(_DNS_SUBDOMAIN, prefix):
        errors.append(_BAD_SUBDOMAIN)
    return errors
