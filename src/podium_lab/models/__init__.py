"""Describes nodes and pods to models, and scores them: features, heuristics, the set scorer, and its files.

A model, a heuristic and an environment see the same numbers, so that what was trained is what is served:

    ClusterArrays, PodArrays → `feature_arrays` → Features → a scorer → `calibrated`, 0 to 100

`features`, `heuristics` and `set_scorer` compute with the array module they are given: NumPy when a scheduler decides,
`jax.numpy` in a training, where they run under `jit` and `vmap` as they are. `schema` names every feature and gives the
hash that model files and servers are checked against.
"""
