"""Places the members of a gang in one go: all that are needed get a node, or none holds one.

`gang_cycle` is what the scheduler runs for a pod that belongs to a gang; `gang_attempt` decides member by member on the
live state and can take everything back; `failed_gangs` remembers why a gang did not fit while nothing changes.
"""
