"""SySched: pods that use similar system calls share nodes, so that a node lets few through that its pods do not use.

`plugin` scores; `profiles` finds which system calls a pod may use; `calls_on_rows` counts those of the pods on each
node.
"""

from podium_plugins.sy_sched.plugin import SySched

__all__ = ["SySched"]
