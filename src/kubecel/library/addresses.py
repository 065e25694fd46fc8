"""Implements IP addresses and ranges: `cidr("10.0.0.0/8").containsIP("10.1.2.3")`."""

import ipaddress
import re
from typing import Final

from kubecel.conversions import address_text
from kubecel.strconv import quoted
from kubecel.values import AddressValue, CelError, Implementation, NetworkValue, no_overload

_BITS: Final = {4: 32, 6: 128}
_PREFIX: Final = re.compile(r"[0-9]|[1-9][0-9]{1,8}")


def _refused(text: str, message: str) -> CelError:
    return CelError(f"ParseAddr({quoted(text)}): {message}")


def _parse(text: str) -> AddressValue:
    """The address that a text stands for, or Go's words for why it stands for none."""
    mark = next((character for character in text if character in ".:%"), "")
    if mark == ".":
        return AddressValue(_parse_v4(text), 4)
    if mark != ":":
        raise _refused(text, "missing IPv6 address" if mark else "unable to parse IP")
    address, percent, zone = text.partition("%")
    if percent and not zone:
        raise _refused(text, "zone must be a non-empty string")
    try:
        return AddressValue(int(ipaddress.IPv6Address(address)), 6)
    except ValueError:
        raise _refused(text, _problem_of_v6(address)) from None


def _parse_v4(text: str) -> int:
    fields: list[int] = []
    value, digits = 0, 0
    for at, character in enumerate(text):
        if "0" <= character <= "9":
            if digits == 1 and value == 0:
                raise _refused(text, "IPv4 field has octet with leading zero")
            value, digits = value * 10 + int(character), digits + 1
            if value > 255:
                raise _refused(text, "IPv4 field has value >255")
        elif character == ".":
            if at in (0, len(text) - 1) or text[at - 1] == ".":
                raise _refused(text, f"IPv4 field must have at least one digit (at {quoted(text[at:])})")
            if len(fields) == 3:
                raise _refused(text, "IPv4 address too long")
            fields.append(value)
            value, digits = 0, 0
        else:
            raise _refused(text, f"unexpected character (at {quoted(text[at:])})")
    if len(fields) < 3:
        raise _refused(text, "IPv4 address too short")
    return int.from_bytes([*fields, value], "big")


def _problem_of_v6(address: str) -> str:
    rest = address.removeprefix("::")
    groups = rest.split(":")
    for number, group in enumerate(groups):
        at = quoted(":".join(groups[number:]))
        if not group and number < len(groups) - 1 and "::" in address.replace("::", "", 1):
            return f"multiple :: in address (at {at})"
        if len(group) > 4 and "." not in group:
            return f"each group must have 4 or less digits (at {at})"
        wrong = re.search("[^0-9a-fA-F.]", group)
        if wrong:
            if wrong.start() == 0:
                return f"each colon-separated field must have at least one digit (at {at})"
            return f"unexpected character, want colon (at {quoted(':'.join(groups[number:])[wrong.start() :])})"
    return "address string too short" if len(groups) < 8 else "trailing garbage after address"


def _address(text: str) -> AddressValue:
    try:
        address = _parse(text)
    except CelError as error:
        message = f"IP Address {quoted(text)} parse error during conversion from string: {error}"
        raise CelError(message) from None
    if "%" in text:
        raise CelError(f"IP address {quoted(text)} with zone value is not allowed")
    if _is_mapped(address):
        raise CelError(f"IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return address


def _is_mapped(address: AddressValue) -> bool:
    return address.family == 6 and address.bits >> 32 == 0xFFFF


def _network(text: str) -> NetworkValue:
    try:
        return _parse_network(text)
    except CelError as error:
        raise CelError(f"network address parse error during conversion from string: {error}") from None


def _parse_network(text: str) -> NetworkValue:
    again = "network address parse error during conversion from string: "
    start, slash, bits = text.rpartition("/")
    problem = ""
    if not slash:
        problem = "no '/'"
    else:
        try:
            address = _parse(start)
        except CelError as error:
            problem = str(error)
        else:
            if "%" in start:
                problem = "IPv6 zones cannot be present in a prefix"
            elif not _PREFIX.fullmatch(bits):
                problem = f"bad bits after slash: {quoted(bits)}"
            elif int(bits) > _BITS[address.family]:
                problem = "prefix length out of range"
    if problem:
        raise CelError(f"{again}netip.ParsePrefix({quoted(text)}): {problem}")
    if _is_mapped(address):
        raise CelError(f"IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return NetworkValue(address, int(bits))


def _is_address(text: str) -> bool:
    try:
        _address(text)
    except CelError:
        return False
    return True


def _is_network(text: str) -> bool:
    try:
        _network(text)
    except CelError:
        return False
    return True


def _first_bits(address: AddressValue, prefix: int) -> int:
    return address.bits >> (_BITS[address.family] - prefix)


def _contains(network: NetworkValue, address: AddressValue) -> bool:
    if network.address.family != address.family:
        return False
    return _first_bits(network.address, network.prefix) == _first_bits(address, network.prefix)


def _contains_text(network: NetworkValue, text: str) -> bool:
    try:
        address = _address(text)
    except CelError:
        raise no_overload() from None
    return _contains(network, address)


def _contains_network(network: NetworkValue, other: NetworkValue) -> bool:
    return network.prefix <= other.prefix and _contains(network, other.address)


def _masked(network: NetworkValue) -> NetworkValue:
    shift = _BITS[network.address.family] - network.prefix
    return NetworkValue(AddressValue(network.address.bits >> shift << shift, network.address.family), network.prefix)


def _first_group(address: AddressValue) -> int:
    return address.bits >> 112


def _is_loopback(address: AddressValue) -> bool:
    return address.bits >> 24 == 127 if address.family == 4 else address.bits == 1


def _is_link_local(address: AddressValue) -> bool:
    return address.bits >> 16 == 0xA9FE if address.family == 4 else _first_group(address) & 0xFFC0 == 0xFE80


def _is_link_local_multicast(address: AddressValue) -> bool:
    return address.bits >> 8 == 0xE00000 if address.family == 4 else _first_group(address) & 0xFF0F == 0xFF02


def _is_multicast(address: AddressValue) -> bool:
    return address.bits >> 28 == 0xE if address.family == 4 else address.bits >> 120 == 0xFF


def _is_global(address: AddressValue) -> bool:
    if address.bits == 0 or (address.family == 4 and address.bits == 0xFFFFFFFF):
        return False
    return not (_is_loopback(address) or _is_multicast(address) or _is_link_local(address))


FUNCTIONS: Final[dict[str, Implementation]] = {
    "string_to_ip": _address,
    "is_ip": _is_address,
    "ip_is_canonical": lambda text: address_text(_address(text)) == text,
    "ip_family": lambda address: address.family,
    "ip_is_unspecified": lambda address: address.bits == 0,
    "ip_is_loopback": _is_loopback,
    "ip_is_link_local_multicast": _is_link_local_multicast,
    "ip_is_link_local_unicast": _is_link_local,
    "ip_is_global_unicast": _is_global,
    "string_to_cidr": _network,
    "is_cidr": _is_network,
    "cidr_ip": lambda network: network.address,
    "cidr_masked": _masked,
    "cidr_prefix_length": lambda network: network.prefix,
    "cidr_contains_ip_string": _contains_text,
    "cidr_contains_ip_ip": _contains,
    "cidr_contains_cidr_string": lambda network, text: _contains_network(network, _network(text)),
    "cidr_contains_cidr": _contains_network,
}
