"""Evaluates CEL, the Common Expression Language, as Kubernetes uses it.

An expression goes through `tokens`, `syntax` and `builder` (text to tree, with macros expanded), `checker` and
`validators` (types), `cost_estimate`, and `evaluation` (nested functions). The words of errors are those of cel-go,
which the API server hands on. `device_selector` is the use of it: the selectors of devices.
"""

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
