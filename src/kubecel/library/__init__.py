"""Implements the functions that Kubernetes gives to CEL expressions, by the identifiers of their overloads."""

from typing import Final

from kubecel.library import (
    addresses,
    amounts,
    formats,
    lists,
    standard,
    strings,
    urls,
    versions,
)
from kubecel.values import Implementation

IMPLEMENTATIONS: Final[dict[str, Implementation]] = {
    **standard.FUNCTIONS,
    **strings.FUNCTIONS,
    **lists.FUNCTIONS,
    **standard.OPTIONAL_FUNCTIONS,
    **standard.TIME_FUNCTIONS,
    **strings.PATTERN_FUNCTIONS,
    **amounts.FUNCTIONS,
    **versions.FUNCTIONS,
    **addresses.FUNCTIONS,
    **urls.FUNCTIONS,
    **formats.FUNCTIONS,
}
"""What computes each overload; the arguments have the types that the overload declares."""
