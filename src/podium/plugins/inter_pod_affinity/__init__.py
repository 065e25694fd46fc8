"""InterPodAffinity: pods that want to be near, or away from, other pods."""

from podium.plugins.inter_pod_affinity.plugin import InterPodAffinity, InterPodAffinityArgs

__all__ = ["InterPodAffinity", "InterPodAffinityArgs"]
