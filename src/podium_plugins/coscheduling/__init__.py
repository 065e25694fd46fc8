"""Coscheduling: the pods of a PodGroup (scheduling.x-k8s.io) start together, or none does.

`plugin` has the extension points; `pod_group` reads the objects; `group_records` counts the members of each group;
`group_room` looks at what the cluster has room for.
"""

from podium_plugins.coscheduling.plugin import Coscheduling

__all__ = ["Coscheduling"]
