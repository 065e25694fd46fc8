"""Offers scheduling as environments for reinforcement learning.

`scheduling_env` is exact: the engine and the scenarios of `podium simulate`, one cluster at a time. `dynamics` is fast:
many clusters at once as one pure function in JAX, with Gymnasium's VectorEnv around it (`vector_env`). Both show the
features of `podium_lab.models`, and give the rewards of `rewards`. `limits` lists what the fast one leaves out.

Gymnasium and JAX come with the extra `podium[train]`, and are imported where they are needed.
"""
