"""Controllers of custom resources that plugins schedule by, and their definitions (podium controller, podium crds)."""
