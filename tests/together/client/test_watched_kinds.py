from podium.client import RESOURCES, WATCHED
from podium.client.resource import GATED
from podium.cluster.objects import Objects
from podium.kube import KINDS, Node, Pod, PriorityClass, ResourceClaimTemplate
from podium.kube.kinds_around_pods import RuntimeClass


def test_everything_that_the_cluster_keeps_can_be_watched() -> None:
    kept = {kind for kind in KINDS.values() if Objects().store_of(kind) is not None}
    assert set(RESOURCES) == kept | {Pod, Node, ResourceClaimTemplate, RuntimeClass}
    rarely = {
        PriorityClass,
        ResourceClaimTemplate,
        RuntimeClass,
        *GATED,
    }  # where a plugin, a gate or a controller asks for them
    assert {resource.type for resource in WATCHED} == set(RESOURCES) - rarely
