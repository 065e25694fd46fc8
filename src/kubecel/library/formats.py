"""Implements the named formats of Kubernetes: `format.dns1123Label().validate("a_b")`."""

import base64
import binascii
import re
from collections.abc import Callable, Iterable
from datetime import date
from typing import Final

from kubecel.conversions import to_timestamp
from kubecel.library.urls import problem_of
from kubecel.names import dns_label_errors, dns_subdomain_errors, label_value_errors, qualified_name_errors
from kubecel.values import NONE, CelError, FormatValue, Implementation, Optional, some

_DNS_1035: Final = re.compile("[a-z]([-a-z0-9]*[a-z0-9])?")
_UUID: Final = re.compile("[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}")
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_NOT_1035: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)


def _dns_1035_errors(text: str) -> Iterable[str]:
    if len(text.encode()) > 63:
        yield "must be no more than 63 characters"
    if not _DNS_1035.fullmatch(text):
        yield _NOT_1035


def _as_prefix(check: Callable[[str], Iterable[str]]) -> Callable[[str], Iterable[str]]:
    """The check of a name that more is appended to: a dash at its end is fine."""

    def checked(text: str) -> Iterable[str]:
        return check(f"{text[:-2]}a" if len(text) > 1 and text.endswith("-") else text)

    return checked


def _unless(holds: Callable[[str], bool], message: str) -> Callable[[str], Iterable[str]]:
    return lambda text: () if holds(text) else (message,)


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _is_date(text: str) -> bool:
    try:
        return bool(_DATE.fullmatch(text)) and bool(date.fromisoformat(text))
    except ValueError:
        return False


def _is_datetime(text: str) -> bool:
    try:
        to_timestamp(text)
    except CelError:
        return False
    return True


def _uri_errors(text: str) -> Iterable[str]:
    problem = problem_of(text)
    return (problem,) if problem else ()


def _format(name: str, check: Callable[[str], Iterable[str]], pattern_size: int) -> FormatValue:
    return FormatValue(name, lambda text: list(check(text)), pattern_size)


FORMATS: Final = {
    "dns1123Label": _format("DNS1123Label", dns_label_errors, 30),
    "dns1123Subdomain": _format("DNS1123Subdomain", dns_subdomain_errors, 60),
    "dns1035Label": _format("DNS1035Label", _dns_1035_errors, 30),
    "qualifiedName": _format("QualifiedName", qualified_name_errors, 60),
    "dns1123LabelPrefix": _format("DNS1123LabelPrefix", _as_prefix(dns_label_errors), 30),
    "dns1123SubdomainPrefix": _format("DNS1123SubdomainPrefix", _as_prefix(dns_subdomain_errors), 60),
    "dns1035LabelPrefix": _format("DNS1035LabelPrefix", _as_prefix(_dns_1035_errors), 30),
    "labelValue": _format("LabelValue", label_value_errors, 40),
    "uri": _format("URI", _uri_errors, 1000),
    "uuid": _format("uuid", _unless(lambda text: bool(_UUID.fullmatch(text)), "does not match the UUID format"), 80),
    "byte": _format("byte", _unless(_is_base64, "invalid base64"), 84),
    "date": _format("date", _unless(_is_date, "invalid date"), 100),
    "datetime": _format("datetime", _unless(_is_datetime, "invalid datetime"), 100),
}


def _named(name: str) -> Optional:
    return some(FORMATS[name]) if name in FORMATS else NONE


def _validate(named: FormatValue, text: str) -> Optional:
    problems = named.check(text)
    return some(problems) if problems else NONE


def _constant(found: FormatValue) -> Implementation:
    return lambda: found


FUNCTIONS: Final[dict[str, Implementation]] = {
    **{f"format.{name}": _constant(found) for name, found in FORMATS.items()},
    "format-named": _named,
    "format-validate": _validate,
}
