"""Kubernetes quantities, exactly: "500m" of a core, "1.5Gi" of memory, 3 devices.

A quantity is a decimal number with a suffix: n u m (nothing) k M G T P E for powers of 1000, Ki Mi Gi Ti Pi Ei for
powers of 1024, or an exponent such as e3. It is never a float: here it is a whole number of nano units, where what is
finer than a nano is rounded away from zero and what is larger than 2^63−1 units is capped. `milli` and `units` round
away from zero as well, so a positive request never becomes nothing.

Decimal quantities past 2^63−1 are capped like binary ones, although Kubernetes itself keeps them and then fails to
convert them.
"""

import re
from functools import lru_cache
from typing import Final

Amount = str | int | float
"""A quantity as written: "500m", "1Gi", 2, 0.5."""

NANO: Final = 10**9
"""Nano units in one unit."""

MILLI: Final = 10**6
"""Nano units in one thousandth."""

MAX: Final = 2**63 - 1
"""The largest number of units (or thousandths) a quantity stands for."""

_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_FORM: Final = re.compile(r"([+-]?)([0-9]*)\.?([0-9]*)([eEinumkKMGTP]*[+-]?[0-9]*)")
_EXPONENT: Final = re.compile(r"[eE]([+-]?[0-9]+)")
_LONGEST: Final = 200
_CACHED: Final = 1 << 16


class QuantityError(ValueError):
    """A text that is not a quantity."""


@lru_cache(maxsize=_CACHED)
def parse(amount: Amount) -> int:
    """The quantity in nano units.

    >>> parse("1500m"), parse(2), parse("0.1n")
    (1500000000, 2000000000, 1)
    """
    if isinstance(amount, int):
        return max(-MAX, min(MAX, amount)) * NANO
    text = repr(amount) if isinstance(amount, float) else amount.strip()
    if len(text) > _LONGEST:
        raise QuantityError(f'quantity "{text[:20]}…" has {len(text)} characters; write it with fewer than {_LONGEST}')
    form = _FORM.fullmatch(text)
    if form is None or not form[2] + form[3]:
        suffix = text.lstrip("+-0123456789.")
        raise _error(text, f'"{suffix}" is not a suffix' if suffix not in ("", text) else "it is not a number")
    sign, whole, fraction, suffix = form.groups()
    magnitude = _magnitude(whole, fraction, *_scale(text, suffix))
    return -magnitude if sign == "-" else magnitude


@lru_cache(maxsize=_CACHED)
def milli(amount: Amount) -> int:
    """The quantity in thousandths, rounded away from zero: what cpu is counted in."""
    return milli_of(parse(amount))


@lru_cache(maxsize=_CACHED)
def units(amount: Amount) -> int:
    """The quantity in whole units, rounded away from zero: what everything but cpu is counted in."""
    return units_of(parse(amount))


def milli_of(nano: int) -> int:
    """Nano units as thousandths, rounded away from zero, at most 2^63−1."""
    return min(MAX, -(-nano // MILLI)) if nano >= 0 else max(-MAX, nano // MILLI)


def units_of(nano: int) -> int:
    """Nano units as whole units, rounded away from zero, at most 2^63−1."""
    return min(MAX, -(-nano // NANO)) if nano >= 0 else max(-MAX, nano // NANO)


def canonical(amount: Amount) -> str:
    """The quantity as Kubernetes prints it: no fraction, the largest suffix of the kind it was written with.

    >>> canonical("1.5Gi"), canonical("0.5"), canonical("1024"), canonical("5000e3")
    ('1536Mi', '500m', '1024', '5e6')
    """
    return format_nano_like(parse(amount), amount)


def format_nano_like(nano: int, amount: Amount) -> str:
    """Nano units in canonical form, with suffixes of the kind that an amount was written with."""
    text = str(amount).strip()
    if text[-2:] in _BINARY:
        return format_nano(nano, binary=True)
    if _EXPONENT.search(text):
        return _with_exponent(nano)
    return format_nano(nano)


def format_nano(nano: int, *, binary: bool = False) -> str:
    """Nano units in canonical form, with binary suffixes where asked for and where they lose nothing."""
    if binary and abs(nano) >= 1024 * NANO and nano % NANO == 0:
        number, suffix = nano // NANO, ""
        for larger in _BINARY:
            if number % 1024:
                break
            number, suffix = number // 1024, larger
        return f"{number}{suffix}"
    number, thousands = _thousands(nano)
    return f"{number}{tuple(_DECIMAL)[thousands]}"


def _with_exponent(nano: int) -> str:
    number, thousands = _thousands(nano)
    exponent = 3 * thousands - 9
    return f"{number}e{exponent}" if exponent else f"{number}"


def _thousands(nano: int) -> tuple[int, int]:
    """The number and how many factors of 1000 were taken out of it; zero is zero units."""
    if nano == 0:
        return 0, 3
    thousands = 0
    while nano % 1000 == 0 and thousands < len(_DECIMAL) - 1:
        nano, thousands = nano // 1000, thousands + 1
    return nano, thousands


def _scale(text: str, suffix: str) -> tuple[int, int]:
    """The powers of ten and of two that a suffix stands for."""
    if suffix in _DECIMAL:
        return _DECIMAL[suffix], 0
    if suffix in _BINARY:
        return 0, _BINARY[suffix]
    exponent = _EXPONENT.fullmatch(suffix)
    if exponent is None or not -MAX - 1 <= (power := int(exponent[1])) <= MAX:
        raise _error(text, f'"{suffix}" is not a suffix')
    return power, 0


def _magnitude(whole: str, fraction: str, tens: int, twos: int) -> int:
    """Nano units of whole.fraction × 10^tens × 2^twos, rounded up and capped."""
    digits = (whole + fraction).lstrip("0")
    if not digits:
        return 0
    shift = 9 + tens - len(fraction)
    # The size is known from the number of digits, so an absurd exponent costs nothing.
    if len(digits) + shift > 40:
        return MAX * NANO
    if len(digits) + shift < -40:
        return 1
    number = int(digits) << twos
    power: int = 10 ** abs(shift)
    return min(MAX * NANO, number * power if shift >= 0 else -(-number // power))


def _error(text: str, problem: str) -> QuantityError:
    return QuantityError(
        f'quantity "{text}" cannot be read because {problem}; write a number with one of the suffixes n u m k M G T P E'
        ' or Ki Mi Gi Ti Pi Ei, such as "500m", "2" or "1.5Gi"'
    )
