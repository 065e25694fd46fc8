"""Computes the natural logarithm, to the last bit as kube-scheduler has it.

Libraries differ in the last bit of a logarithm (for one argument in a hundred), and a score is rounded to a whole
number after being multiplied by one. So that a tie on the edge never falls the other way, this is the classic
reduction with the classic polynomial: x = 2^k · (1 + f) with √½ < 1 + f < √2, s = f / (2 + f), and

    ln x = k·ln 2 + f − f²/2 + s·(f²/2 + R(s²))

with ln 2 in two parts, each operation rounded to double precision in exactly this order.
"""

from __future__ import annotations

import math

_LN2_HIGH = float.fromhex("0x1.62e42feep-1")
_LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
_R1 = 6.666666666666735130e-01
_R2 = 3.999999999940941908e-01
_R3 = 2.857142874366239149e-01
_R4 = 2.222219843214978396e-01
_R5 = 1.818357216161805012e-01
_R6 = 1.531383769920937332e-01
_R7 = 1.479819860511658591e-01


def natural_logarithm(x: float) -> float:
    """ln x for a positive, finite x.

    >>> natural_logarithm(1.0), natural_logarithm(4.0)
    (0.0, 1.3862943611198906)
    """
    fraction, exponent = math.frexp(x)
    if fraction < math.sqrt(0.5):
        fraction *= 2
        exponent -= 1
    f, k = fraction - 1, float(exponent)
    s = f / (2 + f)
    s2 = s * s
    s4 = s2 * s2
    odd = s2 * (_R1 + s4 * (_R3 + s4 * (_R5 + s4 * _R7)))
    even = s4 * (_R2 + s4 * (_R4 + s4 * _R6))
    half_square = 0.5 * f * f
    return k * _LN2_HIGH - ((half_square - (s * (half_square + (odd + even)) + k * _LN2_LOW)) - f)
