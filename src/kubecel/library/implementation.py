"""Names the type of what computes a function."""

from collections.abc import Callable

Implementation = Callable[..., object]
