"""Trains Stable-Baselines3's MaskablePPO on the exact environment.

Needs torch, so give it an environment of its own: pip install podium[train] stable-baselines3 sb3-contrib

    python examples/agents/sb3_maskable_ppo.py 2048
"""

import sys

import gymnasium
from sb3_contrib import MaskablePPO

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
env = gymnasium.make("podium_lab:Podium/Scheduling-v0", objective="least-allocated", max_steps=200)
agent = MaskablePPO("MultiInputPolicy", env.unwrapped, n_steps=256, verbose=1)
agent.learn(steps)

observation, _ = env.reset(seed=42)
total, over, truncated = 0.0, False, False
while not (over or truncated):
    action, _ = agent.predict(observation, action_masks=env.unwrapped.action_masks(), deterministic=True)
    observation, reward, over, truncated, _ = env.step(int(action))
    total += reward
print(f"return of the episode: {total:.1f}")
