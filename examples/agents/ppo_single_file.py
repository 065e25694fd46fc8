"""Trains an agent by PPO in one file, in the manner of CleanRL, on the batched environment and JAX.

Read it from top to bottom and change what you like: the network, the reward, the loop. `podium train --algorithm ppo`
does the same with checkpoints, validation and export. Needs podium[train]:

    python examples/agents/ppo_single_file.py --objective most-allocated --updates 100
"""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

from podium_lab.environments import dynamics
from podium_lab.environments.built_in import chosen_scenario
from podium_lab.environments.episode_tables import EpisodeSource
from podium_lab.models.set_scorer import forward, initial_weights

parser = argparse.ArgumentParser()
parser.add_argument("--objective", default="most-allocated")
parser.add_argument("--scenario", default=None, help="a scenario file; without it, the built-in one")
parser.add_argument("--updates", type=int, default=100)
parser.add_argument("--clusters", type=int, default=32)
parser.add_argument("--horizon", type=int, default=64)
parser.add_argument("--seed", type=int, default=1)
args = parser.parse_args()
GAMMA, TRACE, CLIP, ENTROPY, EPOCHS, PARTS = 0.97, 0.95, 0.2, 0.01, 2, 4

# The world: episodes as arrays, and three pure functions: begin, observe, step.
source = EpisodeSource(chosen_scenario(args.scenario))
game = dynamics.Game.of(source.timing, args.objective)
tables = jax.tree.map(jnp.asarray, source.pool(range(1_000_000, 1_000_032), varied=True))
clusters = dynamics.begin(game, tables, jnp.arange(args.clusters) % 32)

# The agent: the set scorer gives a score for each node, and the value of the state.
weights = {name: jnp.asarray(part) for name, part in initial_weights(np.random.default_rng(args.seed), 32).items()}
optimiser = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(3e-4, eps=1e-5))
state = optimiser.init(weights)


def decide(carry, key):
    """One pod of every cluster: observe, draw a node among those that fit, place."""
    weights, clusters = carry
    seen = dynamics.observe(game, tables, clusters)
    scores, value = forward(jnp, weights, seen)
    action = jax.random.categorical(key, scores)
    log_prob = jnp.take_along_axis(jax.nn.log_softmax(scores), action[:, None], -1)[:, 0]
    clusters, outcome = dynamics.step(game, tables, clusters, action)
    return (weights, clusters), (seen, action, log_prob, value, outcome.reward, outcome.over)


def loss(weights, batch):
    """The clipped objective of PPO; decisions without a choice don't count."""
    (seen, action, old, _, _, _), advantage, target = batch
    scores, value = forward(jnp, weights, seen)
    log_probs = jax.nn.log_softmax(scores)
    log_prob = jnp.take_along_axis(log_probs, action[:, None], -1)[:, 0]
    choice = 1.0 * (seen.mask.sum(-1) > 1)
    ratio = jnp.exp(choice * (log_prob - old))
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    gain = jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * advantage)
    entropy = -jnp.where(seen.mask, jnp.exp(log_probs) * log_probs, 0.0).sum(-1)
    return -(choice * gain).mean() + 0.5 * ((value - target) ** 2).mean() - ENTROPY * (choice * entropy).mean()


@jax.jit
def update(weights, state, clusters, key):
    """Roll out, estimate advantages, and go over the decisions a few times: one compiled function."""
    acting, shuffling = jax.random.split(key)
    keys = jax.random.split(acting, args.horizon)
    (_, clusters), decided = jax.lax.scan(decide, (weights, clusters), keys)
    _, last = forward(jnp, weights, dynamics.observe(game, tables, clusters))
    _, _, _, value, reward, over = decided

    def back(carry, at):
        following, advantage = carry
        reward, value, over = at
        going = GAMMA * (1.0 - over)
        advantage = (1 - GAMMA) * reward + going * following - value + going * TRACE * advantage
        return (value, advantage), advantage

    _, advantage = jax.lax.scan(back, (last, jnp.zeros_like(last)), (reward, value, over), reverse=True)
    everything = jax.tree.map(lambda each: each.reshape(-1, *each.shape[2:]), (decided, advantage, advantage + value))

    def learn(carry, rows):
        weights, state = carry
        slopes = jax.grad(loss)(weights, jax.tree.map(lambda each: each[rows], everything))
        slopes = {name: each * (not name.endswith(("_mean", "_deviation"))) for name, each in slopes.items()}
        changes, state = optimiser.update(slopes, state)
        return (optax.apply_updates(weights, changes), state), None

    size = args.clusters * args.horizon
    orders = [jax.random.permutation(each, size) for each in jax.random.split(shuffling, EPOCHS)]
    (weights, state), _ = jax.lax.scan(learn, (weights, state), jnp.concatenate(orders).reshape(EPOCHS * PARTS, -1))
    return weights, state, clusters, reward.mean()


began = time.perf_counter()
for number, key in enumerate(jax.random.split(jax.random.key(args.seed), args.updates), 1):
    weights, state, clusters, reward = update(weights, state, clusters, key)
    if number % 10 == 0 or number == args.updates:
        speed = number * args.clusters * args.horizon / (time.perf_counter() - began)
        print(f"update {number}: mean reward {float(reward):+.3f}, {speed:,.0f} decisions a second", flush=True)
