"""SySched: pods that use similar system calls share nodes, so that a node lets few through that its pods do not use.

`plugin` scores, and counts the system calls of the pods on each node; `profiles` finds which a pod may use.
"""

from podium_plugins.sy_sched.plugin import SySched

__all__ = ["SySched"]
