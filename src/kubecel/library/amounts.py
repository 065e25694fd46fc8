"""Implements quantities: `quantity("10Gi").isGreaterThan(quantity("5G"))`."""

import re
from typing import Final

from kubecel import quantity
from kubecel.quantity import NANO, QuantityError
from kubecel.values import MAX_INT, MIN_INT, CelError, Implementation, QuantityValue

_FORM: Final = re.compile(r"[+-]?([0-9]*)\.?([0-9]*)([eEinumkKMGTP]*[-+]?[0-9]*)")
_SUFFIX: Final = re.compile(r"[numkMGTPE]?|[KMGTPE]i|[eE][+-]?[0-9]+")
_MOST_DIGITS: Final = 18
_WRONG_FORM: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def read_quantity(text: str) -> QuantityValue:
    """The amount that a text stands for, or the API's words for why it stands for none."""
    form = _FORM.fullmatch(text)
    if form is None or not text:
        raise CelError(_WRONG_FORM)
    if not _SUFFIX.fullmatch(form[3]):
        raise CelError("unable to parse quantity's suffix")
    if not form[1] + form[2]:
        return QuantityValue(0, whole=form[3][:1] not in ("n", "u", "m"))
    try:
        return QuantityValue(quantity.parse(text), whole=_is_whole(form[1].lstrip("0") or "0", form[2], form[3]))
    except QuantityError:
        raise CelError("unable to parse numeric part of quantity") from None


def _is_whole(digits: str, fraction: str, suffix: str) -> bool:
    """Whether Kubernetes keeps the amount as a 64-bit number that is no fraction, as it is written."""
    if suffix.endswith("i"):
        power = 10 * (1 + "KMGTPE".index(suffix[0]))
        return not fraction and 14 - len(digits) - int(power * 3 / 10) >= 0
    power = (
        int(suffix[1:])
        if len(suffix) > 1
        else 3 * ("numkMGTPE".index(suffix) - 3 + (suffix in "kMGTPE"))
        if suffix
        else 0
    )
    power -= len(fraction)
    return len(digits) + len(fraction) <= _MOST_DIGITS and power >= 0 and len(digits + fraction) + power <= 19


def is_quantity(text: str) -> bool:
    try:
        read_quantity(text)
    except CelError:
        return False
    return True


def _is_integer(amount: QuantityValue) -> bool:
    return amount.whole and amount.nano % NANO == 0 and MIN_INT <= amount.nano // NANO <= MAX_INT


def _as_integer(amount: QuantityValue) -> int:
    if not _is_integer(amount):
        raise CelError("cannot convert value to integer")
    return amount.nano // NANO


def _compare(one: QuantityValue, other: QuantityValue) -> int:
    return (one.nano > other.nano) - (one.nano < other.nano)


def _add(one: QuantityValue, other: QuantityValue) -> QuantityValue:
    return QuantityValue(one.nano + other.nano, _stays_whole(one, other), computed=True)


def _subtract(one: QuantityValue, other: QuantityValue) -> QuantityValue:
    return QuantityValue(one.nano - other.nano, _stays_whole(one, other), computed=True)


def _stays_whole(one: QuantityValue, other: QuantityValue) -> bool:
    return (one.whole or not one.nano) and (other.whole or not other.nano)


FUNCTIONS: Final[dict[str, Implementation]] = {
    "string_to_quantity": read_quantity,
    "is_quantity_string": is_quantity,
    "quantity_sign": lambda amount: (amount.nano > 0) - (amount.nano < 0),
    "quantity_is_greater_than": lambda one, other: one.nano > other.nano,
    "quantity_is_less_than": lambda one, other: one.nano < other.nano,
    "quantity_compare_to": _compare,
    "quantity_get_float": lambda amount: amount.nano / NANO,
    "quantity_get_int": _as_integer,
    "quantity_is_integer": _is_integer,
    "quantity_add": _add,
    "quantity_add_int": lambda amount, number: _add(amount, QuantityValue(int(number) * NANO)),
    "quantity_sub": _subtract,
    "quantity_sub_int": lambda amount, number: _subtract(amount, QuantityValue(int(number) * NANO)),
}
