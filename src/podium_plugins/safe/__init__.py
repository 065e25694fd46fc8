"""Placing by the risk that measured usage, which varies, exceeds what a node has: two plugins.

`SafeOverload` keeps pods off nodes where that risk is too high, and prefers those where it is low; `SafeBalance`
prefers nodes with low and steady usage.
"""

from podium_plugins.safe.balance import SafeBalance
from podium_plugins.safe.overload import SafeOverload

__all__ = ["SafeBalance", "SafeOverload"]
