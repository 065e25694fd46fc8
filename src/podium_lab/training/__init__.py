"""Trains the set scorer on scenarios by PPO or DQN, after behaviour cloning, and judges any policy on held-out seeds.

    settings → runs: clone the heuristic → improve (ppo or dqn) → validate, keep the best → an ONNX file

Rollout and update are one compiled function each, over the batched environment. JAX and optax come with the extra
`podium[train]`; judging needs neither.
"""
