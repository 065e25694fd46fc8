"""Places the members of a gang in one go: all that are needed get a node, or none holds one.

`gang_cycle` is what the scheduler runs for a pod that belongs to a gang of Coscheduling; `gang_attempt` decides member
by member on the live state and can take everything back. `group_cycle`, `group_attempt` and `group_placements` are the
same for PodGroups of scheduling.k8s.io, by kube-scheduler's rules. `explain_gang` explains both.
"""
