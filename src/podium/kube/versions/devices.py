"""Names the rules of device allocation that Kubernetes changed from one minor to the next.

The defaults are those of 1.37. An older minor says in its own file which of them it does not have.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DeviceRules:
    """How the allocator of one minor chooses devices, and what it writes down."""

    distinct_compares_all: bool = True
    """`distinctAttribute` compares with every device taken so far; before, with the last one of each request name."""
    limit_by_request: bool = True
    """The limit of 32 devices is checked, and the message worded, request by request; before, for the whole claim."""
    durations_of_int: bool = False
    """Selectors may write `duration(1)`; 1.37 refuses it."""
    errors_name_device: bool = True
    """A selector that fails names the device, and says what to do about a missing key."""
    all_ignores_use: bool = True
    """Which devices are "all" is decided by their whole capacity; before, by what is left of it."""
    unrepresentable_is_fatal: bool = True
    """A capacity request that range arithmetic cannot hold fails the attempt; before, the device was skipped."""
    fractional_ranges: bool = True
    """Ranges are computed in thousandths where all their numbers allow it (gate DRAFractionalCapacityRange)."""
    rounds_in_format_of_step: bool = True
    """A capacity that was rounded up is written in the format of the step; before, in binary units."""
    shares_count_as_use: bool = True
    """A share without consumed capacity marks its device as in use, so that its counters are charged once."""
    counters_follow_nodes: bool = True
    """Slices with shared counters belong to the nodes that they choose; before, to every node."""
    configuration_once: bool = True
    """A configuration of the claim is copied once, and names no requests where it covers all of them; before, once
    for each request that it names."""
    refuses_gated_fields: bool = True
    """While their gates are off, a slice with compatibility groups is left out, and a request with derived attributes
    fails the attempt; before, both fields were unknown."""
    taint_rules: bool = True
    """Taints of DeviceTaintRules count like those of a slice (gate DRADeviceTaintRules)."""
    extended_resources: bool = True
    """Device classes stand behind names of extended resources (gate DRAExtendedResource, on from 1.36)."""
    alternatives_match_apart: bool = True
    """Each alternative's own selectors say which devices are "all"; before, those of the first alternative, where it
    asked for all, too, said it for the second."""
    alternatives_end_apart: bool = True
    """An alternative that asks for all devices takes all; before, only its first device, and the first alternative of
    the request was to provide what came after it."""
    pools_by_name: bool = True
    """Pools and their slices are looked at by name; before, in the order of a Go map, so which of several devices that
    would do is taken was chance. Podium goes by name for every minor; comparisons with kube-scheduler ask."""


NEWEST = DeviceRules()
_CAME_WITH_1_36 = ("extended_resources", "alternatives_match_apart", "alternatives_end_apart", "pools_by_name")
_BEFORE_1_36 = dict.fromkeys(DeviceRules.__dataclass_fields__, False) | {"durations_of_int": True}
BEFORE_1_36 = DeviceRules(**_BEFORE_1_36)
"""None of the rules that came with 1.36 or 1.37."""
BEFORE_1_37 = DeviceRules(**_BEFORE_1_36 | dict.fromkeys(_CAME_WITH_1_36, True))
"""None of the rules that came with 1.37."""
