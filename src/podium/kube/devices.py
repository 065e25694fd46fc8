"""Types devices and the claims on them (resource.k8s.io): classes, slices, claims and templates of claims."""

from __future__ import annotations

from typing import Any, Final

from msgspec import field

from podium.kube.affinity import NodeSelector
from podium.kube.meta import Amount, ClusterObject, Condition, Model, NamespacedObject

EXACT_COUNT: Final = "ExactCount"
ALL: Final = "All"
MOST_RESULTS: Final = 32
"""How many devices one claim can have."""
FINALIZER: Final = "resource.kubernetes.io/delete-protection"
POD_CLAIM_NAME: Final = "resource.kubernetes.io/pod-claim-name"


class CELSelector(Model, frozen=True, kw_only=True):
    expression: str = ""


class DeviceSelectorSpec(Model, frozen=True, kw_only=True):
    cel: CELSelector | None = None


class OpaqueDeviceConfiguration(Model, frozen=True, kw_only=True):
    driver: str = ""
    parameters: Any = None


class DeviceClassConfiguration(Model, frozen=True, kw_only=True):
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(Model, frozen=True, kw_only=True):
    selectors: tuple[DeviceSelectorSpec, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(ClusterObject, frozen=True, kw_only=True):
    spec: DeviceClassSpec = DeviceClassSpec()


class ResourcePool(Model, frozen=True, kw_only=True):
    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class DeviceAttribute(Model, frozen=True, kw_only=True):
    """A value of one of four types."""

    int_value: int | None = field(default=None, name="int")
    bool_value: bool | None = field(default=None, name="bool")
    string_value: str | None = field(default=None, name="string")
    version_value: str | None = field(default=None, name="version")


class CapacityRange(Model, frozen=True, kw_only=True):
    min: Amount | None = None
    max: Amount | None = None
    step: Amount | None = None


class CapacityRequestPolicy(Model, frozen=True, kw_only=True):
    default: Amount | None = None
    valid_values: tuple[Amount, ...] = ()
    valid_range: CapacityRange | None = None


class DeviceCapacity(Model, frozen=True, kw_only=True):
    value: Amount = 0
    request_policy: CapacityRequestPolicy | None = None


class Counter(Model, frozen=True, kw_only=True):
    value: Amount = 0


class CounterSet(Model, frozen=True, kw_only=True):
    name: str = ""
    counters: dict[str, Counter] = field(default_factory=dict)


class CounterConsumption(Model, frozen=True, kw_only=True):
    counter_set: str = ""
    counters: dict[str, Counter] = field(default_factory=dict)
    compatibility_groups: tuple[str, ...] = ()


class DeviceTaint(Model, frozen=True, kw_only=True):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class Device(Model, frozen=True, kw_only=True):
    name: str = ""
    attributes: dict[str, DeviceAttribute] = field(default_factory=dict)
    capacity: dict[str, DeviceCapacity] = field(default_factory=dict)
    consumes_counters: tuple[CounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool = False
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool = False


class ResourceSliceSpec(Model, frozen=True, kw_only=True):
    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    per_device_node_selection: bool = False
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(ClusterObject, frozen=True, kw_only=True):
    spec: ResourceSliceSpec = ResourceSliceSpec()


class DeviceTaintSelector(Model, frozen=True, kw_only=True):
    """Which devices a rule taints: those with all that is named here."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(Model, frozen=True, kw_only=True):
    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRule(ClusterObject, frozen=True, kw_only=True):
    """A taint that an administrator puts on devices of any driver."""

    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()


class DeviceToleration(Model, frozen=True, kw_only=True):
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class CapacityRequirements(Model, frozen=True, kw_only=True):
    requests: dict[str, Amount] = field(default_factory=dict)


class DeviceSubRequest(Model, frozen=True, kw_only=True):
    """What is asked for: devices of a class that selectors choose, a number of them or all."""

    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelectorSpec, ...] = ()
    allocation_mode: str = EXACT_COUNT
    count: int = 0
    admin_access: bool = False
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[Any, ...] = ()

    @property
    def wanted(self) -> int:
        """How many devices, where a number of them is asked for; one unless it says otherwise."""
        return self.count or 1


class DeviceRequest(Model, frozen=True, kw_only=True):
    """A request of a claim: one thing exactly, or the first that is available of several."""

    name: str = ""
    exactly: DeviceSubRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(Model, frozen=True, kw_only=True):
    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaimConfiguration(Model, frozen=True, kw_only=True):
    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaim(Model, frozen=True, kw_only=True):
    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(Model, frozen=True, kw_only=True):
    devices: DeviceClaim = DeviceClaim()


class DeviceRequestAllocation(Model, frozen=True, kw_only=True):
    """A device that a claim has, and for which request."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool = False
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = field(default=None, name="shareID")
    consumed_capacity: dict[str, Amount] = field(default_factory=dict)


class DeviceAllocationConfiguration(Model, frozen=True, kw_only=True):
    source: str = ""
    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceAllocation(Model, frozen=True, kw_only=True):
    results: tuple[DeviceRequestAllocation, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()


class Allocation(Model, frozen=True, kw_only=True):
    """What a claim was given, and where it can be used."""

    devices: DeviceAllocation = DeviceAllocation()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ClaimConsumer(Model, frozen=True, kw_only=True):
    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class AllocatedDeviceStatus(Model, frozen=True, kw_only=True):
    """What a driver reports of a device that a claim has."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = field(default=None, name="shareID")
    conditions: tuple[Condition, ...] = ()


class ResourceClaimStatus(Model, frozen=True, kw_only=True):
    allocation: Allocation | None = None
    reserved_for: tuple[ClaimConsumer, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(NamespacedObject, frozen=True, kw_only=True):
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class ResourceClaimTemplateSpec(Model, frozen=True, kw_only=True):
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(NamespacedObject, frozen=True, kw_only=True):
    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()
