"""Evaluates CEL, the Common Expression Language, as Kubernetes uses it.

An expression goes through `tokens`, `syntax` and `builder` (text to tree, with macros expanded), `checker` and
`validators` (types), `cost_estimate`, and `evaluation` (nested functions). The words of errors are those of cel-go,
which the API server hands on. `device_selector` is the use of it: the selectors of devices.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubecel.device_selector import (
        AttributeValue,
        DeviceSelector,
        DeviceSelectorError,
        SelectableDevice,
        compile_selector,
        selectable,
        version,
    )

__all__ = [
    "AttributeValue",
    "DeviceSelector",
    "DeviceSelectorError",
    "SelectableDevice",
    "compile_selector",
    "selectable",
    "version",
]


def __getattr__(name: str) -> Any:
    """Loads the compiler when one of its names is first used: quantities and names of objects need none of it."""
    if name not in __all__:
        raise AttributeError(f"module 'kubecel' has no attribute {name!r}")
    found = getattr(import_module("kubecel.device_selector"), name)
    globals()[name] = found
    return found
