"""Shows a scheduler in a browser: the cluster, what waits and why, and what was decided."""
