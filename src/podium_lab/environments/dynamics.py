"""Steps many clusters at once: one pure function in JAX, for `jit`, `scan` and `vmap`, on a CPU or a GPU.

    state = begin(game, tables, episodes)                  B clusters, each before the first pod of its episode
    state, outcome = step(game, tables, state, actions)    place each pod, then go on to the next

One step is one pod of each cluster. An action that the mask excludes is taken as the first node that it allows; where
nothing fits the action is ignored, and the pod leaves. When the last pod of an episode has come, the cluster goes on
with another episode of the tables, in the same step. `tables` are those of `EpisodeSource.pool`.

Amounts are whole numbers, so that a cluster that everything has left is exactly empty. `limits` says what is modelled.
"""

from __future__ import annotations

from typing import NamedTuple

from podium_lab.environments.episode_tables import AT_ONCE, NEVER, EpisodeTables, Timing
from podium_lab.environments.rewards import REWARDS, Reward, RewardedPlacement, cost_of_none
from podium_lab.learning.extra import needed
from podium_lab.models.features import Array, ClusterArrays, Features, PodArrays, feature_arrays
from podium_lab.models.heuristics import HEURISTICS, GpuArrays
from podium_lab.models.schema import CLASSES, GPU

jax = needed("jax", "train")
jnp = jax.numpy

CPU_USE, MEMORY_USE, CONNECTIONS, TRAFFIC = range(4)
"""The lines of what is measured."""
NOT_YET = -(2**30)
"""When a node was measured that never was; milliseconds."""
STALE = 300_000
"""Milliseconds after which a measurement no longer counts."""
FRESH = 60_000
"""Milliseconds up to which a measured latency may exclude a node."""


class Game(NamedTuple):
    """What is decided when the function is compiled."""

    timing: Timing
    objective: str
    reward: Reward

    @classmethod
    def of(cls, timing: Timing, objective: str | Reward) -> Game:
        if isinstance(objective, str):
            return cls(timing, objective, REWARDS[objective])
        return cls(timing, "", objective)


class ClusterBatch(NamedTuple):
    """B clusters, each at a pod that is to be placed."""

    episode: Array
    """int32[B]: which of the tables."""
    pod: Array
    """int32[B]: which pod."""
    leaver: Array
    """int32[B]: how many pods have ended."""
    node_of: Array
    """int32[B, N + 1]: where pods are; −1 for nowhere."""
    requested: Array
    """int32[B, W, 4]"""
    use: Array
    """int32[B, W, 4]"""
    classes: Array
    """int32[B, W, CLASSES]: pods by class."""
    spread: Array
    """int32[B, S, Z]: pods by spread group and zone."""
    scrape: Array
    """int32[B]: how many measurements there were."""
    taken: Array
    """int32[B, W, 4]: the newest measurement of each node, known or not."""
    taken_at: Array
    """int32[B, W]: when that was."""
    shown: Array
    """int32[B, W, 4]: the one before."""
    shown_at: Array
    mask: Array
    """bool[B, W]: the nodes that the pod fits."""


class StepOutcome(NamedTuple):
    """What a step gave."""

    reward: Array
    """float32[B]"""
    over: Array
    """bool[B]: the episode is over; the state is before the first pod of the next one."""
    placed: Array
    """bool[B]: the pod got a node."""


def begin(game: Game, tables: EpisodeTables, episodes: Array, pods: Array | int = 0) -> ClusterBatch:
    """Empty clusters, each before the first pod of its episode, or before a later one."""
    empty = _empty(tables, jnp.asarray(episodes, dtype=jnp.int32))
    return _arrive(game, tables, empty._replace(pod=empty.pod + pods))


def step(game: Game, tables: EpisodeTables, state: ClusterBatch, actions: Array) -> tuple[ClusterBatch, StepOutcome]:
    """Place each pod, go on to the next, and say what that was worth."""
    e, i = state.episode, state.pod
    b = jnp.arange(len(e))
    fits = state.mask.any(axis=-1)
    chosen = jnp.clip(actions, 0, state.mask.shape[-1] - 1).astype(jnp.int32)
    allowed = jnp.take_along_axis(state.mask, chosen[:, None], axis=-1)[:, 0]
    node = jnp.where(allowed, chosen, state.mask.argmax(axis=-1)).astype(jnp.int32)
    over = i + 1 >= tables.pods[e]
    reward = _reward(game, tables, state, node, fits)
    put = fits.astype(jnp.int32)
    rule, zone = tables.rule[e, i], tables.zone[e, node]
    state = state._replace(
        node_of=state.node_of.at[b, i].set(jnp.where(fits, node, -1)),
        requested=state.requested.at[b, node].add(put[:, None] * tables.request[e, i]),
        use=state.use.at[b, node].add(put[:, None] * tables.use[e, i]),
        classes=state.classes.at[b, node, tables.pod_class[e, i]].add(put),
        spread=state.spread.at[b, :, zone].add(put[:, None] * tables.counted[e, rule]),
        pod=i + 1,
    )
    state = jax.lax.cond(over.any(), lambda s: _renew(tables, s, over), lambda s: s, state)
    return _arrive(game, tables, state), StepOutcome(reward, over, fits)


def observe(game: Game, tables: EpisodeTables, state: ClusterBatch) -> Features:
    """What an agent is shown of the pods that are to be placed, and where they fit."""
    return feature_arrays(jnp, cluster_arrays(game, tables, state), pod_arrays(tables, state))


def heuristic_scores(game: Game, tables: EpisodeTables, state: ClusterBatch, objective: str) -> Array:
    """The scores of an objective's greedy heuristic; −inf where the pod doesn't fit."""
    found = cluster_arrays(game, tables, state)
    scores = HEURISTICS[objective](jnp, found, pod_arrays(tables, state), gpu_arrays(game, found))
    return jnp.where(state.mask, scores, -jnp.inf)


# What is shown


def cluster_arrays(game: Game, tables: EpisodeTables, state: ClusterBatch) -> ClusterArrays:
    """The nodes as measurements show them."""
    return _cluster(tables, state, *_measured(game, tables, state))


def _true_arrays(tables: EpisodeTables, state: ClusterBatch) -> ClusterArrays:
    """The nodes as they are."""
    latency = tables.latency[state.episode]
    return _cluster(tables, state, state.use.astype(jnp.float32), jnp.zeros(latency.shape), latency)


def _cluster(tables: EpisodeTables, state: ClusterBatch, use: Array, age: Array, latency: Array) -> ClusterArrays:
    e = state.episode
    none = jnp.full(latency.shape, jnp.nan)
    i = jnp.minimum(state.pod, tables.pods[e] - 1)
    own = tables.pod_class[e, i]
    return ClusterArrays(
        capacity=tables.capacity[e].astype(jnp.float32),
        requested=state.requested.astype(jnp.float32),
        used=jnp.stack([use[..., CPU_USE], use[..., MEMORY_USE], none, none], axis=-1),
        connections=use[..., CONNECTIONS],
        traffic=100.0 * use[..., TRAFFIC],
        link_speed=none,
        latency=latency,
        age=age,
        same_class=jnp.take_along_axis(state.classes, own[:, None, None], axis=-1)[..., 0].astype(jnp.float32),
        mask=state.mask,
        nodes=tables.nodes[e],
        queue=tables.queue[e, i],
    )


def pod_arrays(tables: EpisodeTables, state: ClusterBatch) -> PodArrays:
    e, i = state.episode, jnp.minimum(state.pod, tables.pods[state.episode] - 1)
    limits = tables.limits[e, i]
    return PodArrays(
        request=tables.request[e, i].astype(jnp.float32),
        latency_soft=limits[:, 0],
        latency_hard=limits[:, 1],
        priority=tables.priority[e, i],
        pod_class=tables.pod_class[e, i],
    )


def gpu_arrays(game: Game, cluster: ClusterArrays) -> GpuArrays:
    """Whole devices: those that are free."""
    typical, devices = game.timing.survey.typical, max(game.timing.survey.devices, 1)
    free = (cluster.capacity[..., GPU] - cluster.requested[..., GPU])[..., None]
    return GpuArrays(
        free=jnp.where(1000 * jnp.arange(devices) < free, 1000.0, 0.0),
        typical_cpu=jnp.array(typical.cpu),
        typical_gpus=jnp.array(typical.gpus),
        typical_milli=jnp.full(len(typical.gpus), 1000.0),
        typical_share=jnp.array(typical.share),
    )


def _measured(game: Game, tables: EpisodeTables, state: ClusterBatch) -> tuple[Array, Array, Array]:
    """What is known of use and latency, NaN where nothing is, and the age of that in seconds."""
    e, timing = state.episode, game.timing
    if timing.interval == NEVER:
        unknown = jnp.full(state.mask.shape, jnp.nan)
        return jnp.full(state.use.shape, jnp.nan), unknown, unknown
    now = tables.at[e, jnp.minimum(state.pod, tables.pods[e] - 1)]
    newest = state.scrape * timing.interval + timing.late <= now
    at = jnp.where(newest[:, None], state.taken_at, state.shown_at)
    known = now[:, None] - at <= STALE
    use = jnp.where(newest[:, None, None], state.taken, state.shown)
    age = jnp.where(known, (now[:, None] - at) / 1000.0, jnp.nan)
    latency = jnp.where(known, tables.latency[e], jnp.nan)
    return jnp.where(known[..., None], use.astype(jnp.float32), jnp.nan), age, latency


# What happens


def _empty(tables: EpisodeTables, episodes: Array) -> ClusterBatch:
    number, width = len(episodes), tables.zone.shape[-1]
    pods, groups, zones = tables.at.shape[-1], tables.counted.shape[-1], tables.spread_zones.shape[-1]

    def zeros(*shape: int) -> Array:
        return jnp.zeros((number, *shape), dtype=jnp.int32)

    return ClusterBatch(
        episode=episodes,
        pod=zeros(),
        leaver=zeros(),
        node_of=jnp.full((number, pods + 1), -1, dtype=jnp.int32),
        requested=zeros(width, 4),
        use=zeros(width, 4),
        classes=zeros(width, CLASSES),
        spread=zeros(groups, zones),
        scrape=zeros(),
        taken=zeros(width, 4),
        taken_at=zeros(width) + NOT_YET,
        shown=zeros(width, 4),
        shown_at=zeros(width) + NOT_YET,
        mask=jnp.zeros((number, width), dtype=jnp.bool_),
    )


def _renew(tables: EpisodeTables, state: ClusterBatch, over: Array) -> ClusterBatch:
    """The clusters whose episode is over, empty, before the next one."""
    following = (state.episode + len(over) + 1) % len(tables.pods)
    fresh = _empty(tables, following)

    def renewed(new: Array, old: Array) -> Array:
        return jnp.where(over.reshape(-1, *(1,) * (old.ndim - 1)), new, old)

    return ClusterBatch(*map(renewed, fresh, state))


def _arrive(game: Game, tables: EpisodeTables, state: ClusterBatch) -> ClusterBatch:
    """Let everything happen until the next pod comes, and find where it fits."""
    e = state.episode
    until = tables.at[e, state.pod]
    interval = game.timing.interval

    def limit(s: ClusterBatch) -> Array:
        return until if interval == NEVER else jnp.minimum(until, (s.scrape + 1) * interval)

    def leave(s: ClusterBatch) -> ClusterBatch:
        left: ClusterBatch = jax.lax.while_loop(
            lambda s: (_next_end(tables, s) <= limit(s)).any(), lambda s: _leave(tables, s, limit(s)), s
        )
        return left

    if interval == NEVER:
        state = leave(state)
    else:

        def scraping(s: ClusterBatch) -> Array:
            return (s.scrape + 1) * interval <= until

        def scrape(s: ClusterBatch) -> ClusterBatch:
            return _scrape(tables, s, scraping(s), interval)

        state = jax.lax.while_loop(lambda s: scraping(s).any(), lambda s: scrape(leave(s)), state)
        state = leave(state)
    return state._replace(mask=_mask(game, tables, state))


def _next_end(tables: EpisodeTables, state: ClusterBatch) -> Array:
    return tables.ends[state.episode, tables.leaving[state.episode, state.leaver]]


def _leave(tables: EpisodeTables, state: ClusterBatch, limit: Array) -> ClusterBatch:
    """The next few pods of each cluster that end by `limit` go."""
    e = state.episode[:, None]
    b = jnp.arange(len(limit))[:, None]
    pods = tables.leaving[e, state.leaver[:, None] + jnp.arange(AT_ONCE)]
    due = tables.ends[e, pods] <= limit[:, None]
    node = state.node_of[b, pods]
    gone = -(due & (node >= 0)).astype(jnp.int32)
    pods = jnp.minimum(pods, tables.at.shape[-1] - 1)
    node = jnp.maximum(node, 0)
    counted = tables.counted[e, tables.rule[e, pods]]
    return state._replace(
        leaver=state.leaver + due.sum(axis=-1, dtype=jnp.int32),
        requested=state.requested.at[b, node].add(gone[..., None] * tables.request[e, pods]),
        use=state.use.at[b, node].add(gone[..., None] * tables.use[e, pods]),
        classes=state.classes.at[b, node, tables.pod_class[e, pods]].add(gone),
        spread=state.spread.at[b, :, tables.zone[e, node]].add(gone[..., None] * counted),
    )


def _scrape(tables: EpisodeTables, state: ClusterBatch, scraping: Array, interval: int) -> ClusterBatch:
    """Measure the clusters where it's time to; what was newest is known by now."""
    e = state.episode
    seen = tables.scraped[e, jnp.minimum(state.scrape, tables.scraped.shape[1] - 1)] & scraping[:, None]
    all_nodes = scraping[:, None]
    return state._replace(
        scrape=state.scrape + scraping,
        shown=jnp.where(all_nodes[..., None], state.taken, state.shown),
        shown_at=jnp.where(all_nodes, state.taken_at, state.shown_at),
        taken=jnp.where(seen[..., None], state.use, state.taken),
        taken_at=jnp.where(seen, ((state.scrape + 1) * interval)[:, None], state.taken_at),
    )


def _mask(game: Game, tables: EpisodeTables, state: ClusterBatch) -> Array:
    """Where the pods fit: resources, what selectors and taints allow, spreading; and latency, where another is left."""
    e, i = state.episode, jnp.minimum(state.pod, tables.pods[state.episode] - 1)
    rule, request = tables.rule[e, i], tables.request[e, i][:, None]
    room = ((state.requested + request <= tables.capacity[e]) | (request == 0)).all(axis=-1)
    mask = room & tables.allowed[e, rule]
    group = tables.spread[e, rule]
    counts = jnp.take_along_axis(state.spread, jnp.maximum(group, 0)[:, None, None], axis=1)[:, 0]
    counting = tables.spread_zones[e, rule]
    least = jnp.where(counting, counts, NEVER).min(axis=-1)
    own = jnp.take_along_axis(tables.counted[e, rule], jnp.maximum(group, 0)[:, None], axis=-1)[:, 0]
    even = (counts + (own - least)[:, None] <= tables.skew[e, rule][:, None]) & counting
    mask = mask & ((group < 0)[:, None] | jnp.take_along_axis(even, tables.zone[e], axis=-1))
    if game.objective != "latency-aware":
        return mask
    _, age, latency = _measured(game, tables, state._replace(mask=mask))
    late = (latency > tables.limits[e, i, 1][:, None]) & (age * 1000 <= FRESH)
    left = mask & ~late
    return jnp.where(left.any(axis=-1)[:, None], left, mask)


def _reward(game: Game, tables: EpisodeTables, state: ClusterBatch, node: Array, fits: Array) -> Array:
    e, i = state.episode, state.pod
    cluster, pod = _true_arrays(tables, state), pod_arrays(tables, state)
    later = tables.at[e, jnp.minimum(i + 1, tables.pods[e] - 1)]
    units = (later - tables.at[e, i]) / (1000 * game.timing.survey.unit)
    placed = RewardedPlacement(cluster, pod, node, units, gpu_arrays(game, cluster))
    cost = cost_of_none(jnp, pod.request, cluster.capacity)
    return jnp.where(fits, game.reward(jnp, placed), cost).astype(jnp.float32)
