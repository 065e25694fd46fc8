"""Validates addresses of network interfaces: an address with the length of its prefix, in canonical form.

Zeros in front of a number are read as the API server reads them, as decimal, and are then not canonical.
"""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Final

from podium_cluster.apiserver.errors import invalid_value
from podium_cluster.apiserver.writes.validation.wording import Causes

_NOT_ADDRESS: Final = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
_LEADING_ZEROS: Final = re.compile(r"(?<![0-9A-Fa-f])0+(?=[0-9A-Fa-f])")


def interface_address(path: str, value: str) -> Causes:
    canonical = canonical_form(value)
    if canonical is None:
        yield invalid_value(path, value, _NOT_ADDRESS)
    elif value != canonical:
        yield invalid_value(path, value, f'must be in canonical form ("{canonical}")')


def canonical_form(value: str) -> str | None:
    """The address as it should be written; None where it is none."""
    text, slash, prefix = value.partition("/")
    if not slash or not re.fullmatch("0*[0-9]{1,3}", prefix):
        return None
    address = _address(text)
    length = int(prefix[-3:])
    if address is None or length > address.max_prefixlen:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return f"{address.ipv4_mapped}/{length - 96 if length > 32 else length}"
    return f"{address}/{length}"


def _address(text: str) -> IPv4Address | IPv6Address | None:
    plain = _LEADING_ZEROS.sub("", text)
    try:
        return IPv4Address(plain)
    except AddressValueError:
        pass
    try:
        return None if "%" in text else IPv6Address(plain)
    except AddressValueError:
        return None
