"""Finds the nodes of a catalog with the least price on which the engine places every pod that waits.

Combinations are tried from the cheapest on, and each is verified: the nodes are added, and the engine places all pods
in the order of the queue under the real profile, because scores may put a small pod where a large one had to go. The
first that holds is the cheapest, and that is a proof. What cannot hold the pods by amounts alone is not tried.

For many pods this takes too long, so a good combination is found first: by mixed-integer covering where scipy is
installed, else by filling one type after another. Its price and the bound of the covering problem give the gap.
"""

from __future__ import annotations

import heapq
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import comb
from typing import Final

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from podium.engine.decide import find_feasible
from podium.framework.cycle import Cycle
from podium.framework.status import PluginError
from podium.kube import Pod
from podium.kube.requests import fit_requests
from podium.whatif.applying import HOSTNAME, add_node, free_name
from podium.whatif.capacity import left_over, replace_sampling
from podium.whatif.catalog import Catalog
from podium.whatif.covering import Cover, CoverBound, solve
from podium.whatif.offers import Offer, PurchaseRules, offers_of
from podium.whatif.placements import PodPlacement, SandboxPlacer
from podium.whatif.sandbox import Sandbox
from podium.workloads import daemon_sets

OPTIMAL: Final = "optimal"
GAP: Final = "gap"
RELATIONAL: Final = frozenset({"PodTopologySpread", "InterPodAffinity"})
"""What these refuse on one new node, they may allow on several."""
FEW_PODS: Final = 60
FEW_NODES: Final = 6
FEW_COMBINATIONS: Final = 20_000
"""Combinations of more nodes are too many to be tried one by one, unless there are few types."""
UNUSED: Final = (0.25, 0.5, 1.0, 2.0)
"""What nodes may leave unused, in pods of the mean size."""
STARTS: Final = 8
ATTEMPTS: Final = 40
MOST_QUEUED: Final = 1_000_000
EXTRA: Final = 20
"""Combinations that are tried for a runner-up."""


Combination = tuple[tuple[int, ...], float]
"""The numbers of offers, each as often as it is bought, and what they cost."""


@dataclass
class Bought:
    """A new node, and what it would hold."""

    node: str
    offer: Offer
    pods: list[str] = field(default_factory=list)
    left_over: dict[str, str] = field(default_factory=dict)


@dataclass
class Hopeless:
    """A pod that no type can hold, and why each refuses it."""

    pod: Pod
    reasons: dict[str, str]


@dataclass
class Purchase:
    """The cheapest nodes found, and what is proved of them."""

    nodes: list[Bought]
    price: float
    currency: str
    lower_bound: float
    proved: str
    solved: bool
    runner_up: tuple[dict[str, int], float] | None
    hopeless: list[Hopeless]
    daemon_share: dict[str, dict[str, int]]
    order_sensitive: bool
    placements: list[PodPlacement]
    tried: int

    @property
    def gap(self) -> float:
        """By how much the price may be above the least one, as a share of it."""
        if self.proved == OPTIMAL:
            return 0.0
        if not self.price:
            return 1.0
        return max(0.0, (self.price - self.lower_bound) / self.price)

    @property
    def counts(self) -> Counter[tuple[str, str]]:
        return Counter((each.offer.name, each.offer.zone) for each in self.nodes)


def purchase(
    sandbox: Sandbox,
    catalog: Catalog,
    pods: Sequence[Pod],
    rules: PurchaseRules | None = None,
    *,
    clock: Callable[[], float] = time.monotonic,
) -> Purchase:
    """The cheapest nodes that, added, let the engine place these pods; the sandbox is left as it was."""
    search = _PurchaseSearch(sandbox, catalog, pods, rules or PurchaseRules(), clock)
    return search.run()


class _PurchaseSearch:
    """One search, with what it has tried."""

    def __init__(
        self, sandbox: Sandbox, catalog: Catalog, pods: Sequence[Pod], rules: PurchaseRules, clock: Callable[[], float]
    ) -> None:
        self._sandbox = sandbox
        self._catalog = catalog
        self._rules = rules
        self._clock = clock
        self._end = clock() + rules.seconds
        self._pods = list(pods)
        self._of_each = daemon_sets.one_of_each(placed.pod for placed in sandbox.cluster.pods.values())
        self._tried: dict[tuple[int, ...], tuple[bool, list[PodPlacement]]] = {}
        self._order_sensitive = False
        self._all: list[Offer] = []

    def run(self) -> Purchase:
        if self._verify(())[0]:
            return self._result((), 0.0, solved=True, hopeless=[])
        self._all = offers = offers_of(self._sandbox, self._catalog, self._pods, self._rules, self._of_each)
        cover, hopeless = self._cover(offers)
        if hopeless:
            lost = {each.pod.uid for each in hopeless}
            self._pods = [pod for pod in self._pods if pod.uid not in lost]
            self._tried.clear()
            if self._verify(())[0]:
                return self._result((), 0.0, solved=False, hopeless=hopeless)
        bound = solve(cover, max(0.5, self._rules.seconds * 0.4))
        best = self._heuristic(cover, bound)
        return self._from_the_cheapest(cover, bound, best, hopeless)

    # What each offer can hold

    def _cover(self, offers: Sequence[Offer]) -> tuple[Cover, list[Hopeless]]:
        """All pods by signature, with where they may go; and those that no node takes, old or new."""
        sandbox = self._sandbox
        by_signature: dict[bytes, list[Pod]] = {}
        for pod in self._pods:
            by_signature.setdefault(sandbox.cluster.facts.of(pod).signature, []).append(pod)
        old_rows = sandbox.cluster.order.rows.tolist()
        able: list[NDArray[np.bool_]] = []
        able_here: list[NDArray[np.bool_]] = []
        held_signatures: list[list[Pod]] = []
        hopeless: list[Hopeless] = []
        resources = list(dict.fromkeys(name for pods in by_signature.values() for name in fit_requests(pods[0])))
        free = self._free(old_rows, resources)
        with sandbox.trying():
            rows = [sandbox.cluster.row_of[self._add(offer)] for offer in offers]
            for pods in by_signature.values():
                takes, reasons = self._takes(pods[0], [*old_rows, *rows], offers)
                if not takes.any():
                    hopeless += [Hopeless(pod, reasons) for pod in pods]
                    continue
                held_signatures.append(pods)
                able_here.append(takes[: len(old_rows)])
                able.append(takes[len(old_rows) :])
        requests = [[*(fit_requests(pods[0]).get(name, 0) for name in resources), 1] for pods in held_signatures]
        rooms = [[*(each.room.get(name, 0) for name in resources), each.room.get("pods", 0)] for each in offers]
        size = len(resources) + 1
        cover = Cover(
            [len(pods) for pods in held_signatures],
            np.array(requests, dtype=np.float64).reshape(len(held_signatures), size),
            np.array(rooms, dtype=np.float64).reshape(len(offers), size),
            np.array([each.price for each in offers], dtype=np.float64),
            np.array(able, dtype=np.bool_).reshape(len(held_signatures), len(offers)),
            free,
            np.array(able_here, dtype=np.bool_).reshape(len(held_signatures), len(old_rows)),
            [each.type.max for each in offers],
        )
        return cover, hopeless

    def _free(self, rows: Sequence[int], resources: Sequence[str]) -> NDArray[np.float64]:
        """[node, resource]: what nodes have free, with the pod slots last."""
        columns = self._sandbox.cluster.resources
        lines = [columns.allocatable_of(name)[rows] - columns.requested_of(name)[rows] for name in resources]
        lines.append(columns.allowed_pods[rows] - columns.pod_count[rows])
        return np.maximum(np.array(lines, dtype=np.float64).T.reshape(len(rows), len(lines)), 0.0)

    def _takes(
        self, pod: Pod, rows: Sequence[int], offers: Sequence[Offer]
    ) -> tuple[NDArray[np.bool_], dict[str, str]]:
        """Whether an empty node of each offer takes the pod, relations to other pods left aside."""
        sandbox = self._sandbox
        runtime = sandbox.engine.profiles[pod.spec.scheduler_name]
        takes = np.zeros(len(rows), dtype=np.bool_)
        reasons: dict[str, str] = {}
        try:
            search = find_feasible(runtime, Cycle(pod, sandbox.cluster), replace_sampling(sandbox))
        except PluginError as error:
            return takes, {"": str(error)}
        feasible = set(search.feasible.tolist())
        statuses = search.statuses()
        first = len(rows) - len(offers)
        for position, row in enumerate(rows):
            status = statuses.get(row)
            takes[position] = row in feasible or status.plugin in RELATIONAL
            if not takes[position] and position >= first:
                reasons[offers[position - first].name] = status.message
        return takes, reasons

    def _add(self, offer: Offer) -> str:
        name = free_name(self._sandbox, offer.name)
        labels = {**offer.node.labels, HOSTNAME: name}
        metadata = replace(offer.node.metadata, name=name, uid=name, labels=labels)
        add_node(self._sandbox, replace(offer.node, metadata=metadata), self._of_each)
        return name

    def _added(self, chosen: Sequence[int]) -> list[tuple[str, Offer]]:
        """Add these offers in the order of their names: which of equal nodes a pod gets depends on the order."""
        offers = sorted((self._all[index] for index in chosen), key=lambda each: (each.name, each.zone))
        return [(self._add(offer), offer) for offer in offers]

    # Trying combinations

    def _verify(self, chosen: tuple[int, ...]) -> tuple[bool, list[PodPlacement]]:
        """Whether the engine places every pod once these offers are added."""
        known = self._tried.get(chosen)
        if known is None:
            sandbox = self._sandbox
            with sandbox.trying():
                self._added(chosen)
                placer = SandboxPlacer(sandbox)
                placements = placer.place_all(placer.in_queue_order(self._pods))
            known = self._tried[chosen] = all(each.fits for each in placements), placements
        return known

    def _heuristic(self, cover: Cover, bound: CoverBound) -> Combination | None:
        """A combination that holds: what the covering problem chose, or one type after another, and what is missing.

        Liquid pods make small nodes look good, on which whole pods leave much unused. So the problem is also solved
        with nodes that leave a share of a pod unused.
        """
        found: Combination | None = None
        solved = [bound.counts] if bound.counts else []
        for share in UNUSED if solved else ():
            if self._holds(solved[-1]) or self._clock() > self._end:
                break
            counts = solve(cover.with_unused(share), max(0.5, self._rules.seconds * 0.1)).counts
            solved += [counts] if counts else []
        solved.sort(key=lambda counts: len(self._left(counts)))
        for counts in (*solved, *cover.fills()[:STARTS]):
            better = self._grown(counts, found)
            if better is not None and (found is None or better[1] < found[1] - 1e-9):
                found = better
            if self._clock() > self._end or (found is not None and found[1] <= bound.price * 1.01):
                break
        return found if found is None else self._shrunk(found)

    def _holds(self, counts: Mapping[int, int]) -> bool:
        return self._allowed(Counter(counts)) and not self._left(counts)

    def _left(self, counts: Mapping[int, int]) -> list[Pod]:
        """The pods without a node on these offers."""
        placements = self._verify(tuple(sorted(Counter(counts).elements())))[1]
        return [each.pod for each in placements if not each.fits]

    def _grown(self, counts: Mapping[int, int], known: Combination | None) -> Combination | None:
        """The combination with nodes added until the engine places all, then without those that are not needed."""
        offers = self._all
        chosen = Counter(counts)
        for _attempt in range(ATTEMPTS):
            key = tuple(sorted(chosen.elements()))
            price = sum(offers[index].price for index in key)
            if (known is not None and price >= known[1]) or not self._allowed(chosen):
                return None
            holds, placements = self._verify(key)
            if holds:
                return self._thinned(chosen)
            if known is not None and self._clock() > self._end:
                return None
            added = self._enough_for([each.pod for each in placements if not each.fits])
            if added is None:
                return None
            chosen.update(added)
        return None

    def _enough_for(self, pods: Sequence[Pod]) -> Counter[int] | None:
        """Nodes for pods that are left: of the cheapest offer that holds the largest, as many as they fill."""
        offers = self._all
        largest = max(pods, key=lambda pod: sum(fit_requests(pod).values()))
        with self._sandbox.trying():
            names = [self._add(offer) for offer in offers]
            takes, _ = self._takes(largest, [self._sandbox.cluster.row_of[name] for name in names], offers)
        wanted = fit_requests(largest)
        able = [
            index
            for index, offer in enumerate(offers)
            if takes[index] and all(offer.room.get(name, 0) >= amount for name, amount in wanted.items())
        ]
        if not able:
            return None
        total: Counter[str] = Counter({"pods": len(pods)})
        for pod in pods:
            total.update(fit_requests(pod))

        def nodes(index: int) -> int:
            room = offers[index].room
            return max(1, *(amount // room[name] for name, amount in total.items() if room.get(name)))

        best = min(able, key=lambda index: nodes(index) * offers[index].price)
        return Counter({best: nodes(best)})

    def _thinned(self, chosen: Counter[int]) -> Combination:
        offers = self._all
        for index in sorted(chosen, key=lambda each: -offers[each].price):
            while chosen[index] and self._clock() < self._end:
                fewer = chosen.copy()
                fewer[index] -= 1
                if not self._verify(tuple(sorted(fewer.elements())))[0]:
                    break
                chosen[index] -= 1
        key = tuple(sorted(chosen.elements()))
        return key, sum(offers[index].price for index in key)

    def _shrunk(self, best: Combination) -> Combination:
        """The combination with nodes that are little used replaced by cheaper ones that hold the same pods."""
        offers = self._all
        while self._clock() < self._end:
            savings = self._cheaper_nodes(best[0])
            while savings:
                chosen = Counter(best[0])
                for _saving, old, new in savings:
                    chosen[old] -= 1
                    chosen[new] += 1
                key = tuple(sorted(chosen.elements()))
                if self._allowed(chosen) and self._verify(key)[0]:
                    best = self._thinned(Counter(key))
                    break
                savings = savings[: len(savings) // 2] if self._clock() < self._end else []
            if not savings:
                break
        return best[0], sum(offers[index].price for index in best[0])

    def _cheaper_nodes(self, key: tuple[int, ...]) -> list[tuple[float, int, int]]:
        """What each node could be replaced by, given what the engine puts on it: saving, old and new offer."""
        offers, sandbox = self._all, self._sandbox
        numbers = {id(offer): index for index, offer in enumerate(offers)}
        with sandbox.trying():
            added = self._added(key)
            placer = SandboxPlacer(sandbox)
            placements = placer.place_all(placer.in_queue_order(self._pods))
        held: dict[str, Counter[str]] = {name: Counter() for name, _offer in added}
        for placement in placements:
            if placement.node in held:
                held[placement.node].update({**fit_requests(placement.pod), "pods": 1})
        found = []
        for name, offer in added:
            fitting = (
                index
                for index, other in enumerate(offers)
                if other.price < offer.price
                and (other.type.taints, other.type.labels) == (offer.type.taints, offer.type.labels)
                and all(other.room.get(resource, 0) >= amount for resource, amount in held[name].items())
            )
            cheapest = min(fitting, key=lambda index: offers[index].price, default=None)
            if cheapest is not None:
                found.append((offer.price - offers[cheapest].price, numbers[id(offer)], cheapest))
        return sorted(found, reverse=True)

    def _allowed(self, chosen: Counter[int]) -> bool:
        rules, offers = self._rules, self._all
        if rules.max_nodes is not None and chosen.total() > rules.max_nodes:
            return False
        by_type: Counter[str] = Counter()
        for index, number in chosen.items():
            by_type[offers[index].name] += number
        if rules.max_types is not None and sum(number > 0 for number in by_type.values()) > rules.max_types:
            return False
        limits = {each.name: each.type.max for each in offers}
        return all(limits[name] is None or number <= limits[name] for name, number in by_type.items())  # type: ignore[operator]

    def _from_the_cheapest(
        self, cover: Cover, bound: CoverBound, best: Combination | None, hopeless: list[Hopeless]
    ) -> Purchase:
        """Combinations in the order of their prices, until one holds; where there are too many, the best one known."""
        least = bound.price
        if best is None or self._countable(best[0]):
            for price, key in self._combinations():
                if best is not None and price >= best[1] - 1e-9:
                    least = best[1]
                    break
                if self._clock() > self._end:
                    break
                least = max(least, price)
                if not self._allowed(Counter(key)) or not cover.may_hold(key):
                    continue
                if self._verify(key)[0]:
                    best, least = (key, price), price
                    break
                if len(self._pods) <= FEW_PODS and cover.packs(key):
                    self._order_sensitive = True
        if best is None:
            return self._result((), least, solved=False, hopeless=hopeless)
        runner_up = self._runner_up(cover, best)
        result = self._result(best[0], least, solved=True, hopeless=hopeless)
        result.runner_up = runner_up
        return result

    def _countable(self, key: Sequence[int]) -> bool:
        """Whether combinations of so many nodes are few enough to be tried one by one."""
        return len(key) <= FEW_NODES or comb(len(key) + len(self._all), len(self._all)) <= FEW_COMBINATIONS

    def _runner_up(self, cover: Cover, best: Combination) -> tuple[dict[str, int], float] | None:
        """The next combination of types that holds, leaving out the best one with nodes added."""
        offers = self._all
        known = [(sum(offers[i].price for i in key), key) for key, (holds, _) in self._tried.items() if holds]

        def names_of(key: Sequence[int]) -> Counter[str]:
            return Counter(offers[index].name for index in key)

        others = [each for each in known if not names_of(each[1]) >= names_of(best[0])]
        looked = 0
        for price, key in self._combinations() if self._countable(best[0]) else ():
            if price < best[1] or names_of(key) >= names_of(best[0]):
                continue
            looked += 1
            if looked > EXTRA or self._clock() > self._end or (others and price >= min(others)[0]):
                break
            if self._allowed(Counter(key)) and cover.may_hold(key) and self._verify(key)[0]:
                others.append((price, key))
                break
        if not others:
            return None
        price, key = min(others)
        return dict(names_of(key)), round(price, 6)

    def _combinations(self) -> Iterator[tuple[float, tuple[int, ...]]]:
        """All multisets of offers with their prices, the cheapest first."""
        offers = self._all
        most = self._rules.max_nodes or max(1, len(self._pods))
        queue: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
        while queue and len(queue) < MOST_QUEUED:
            price, key = heapq.heappop(queue)
            if key:
                yield price, key
            if len(key) < most:
                for index in range(key[-1] if key else 0, len(offers)):
                    heapq.heappush(queue, (round(price + offers[index].price, 9), (*key, index)))

    def _result(self, key: tuple[int, ...], least: float, *, solved: bool, hopeless: list[Hopeless]) -> Purchase:
        holds, placements = self._verify(key)
        sandbox = self._sandbox
        with sandbox.trying():
            bought = [Bought(name, offer) for name, offer in self._added(key)]
            placer = SandboxPlacer(sandbox)
            placements = placer.place_all(placer.in_queue_order(self._pods))
            by_name = {each.node: each for each in bought}
            for placement in placements:
                if placement.node in by_name:
                    by_name[placement.node].pods.append(placement.pod.key)
            for each in bought:
                each.left_over = left_over(sandbox, each.node, [placement.pod for placement in placements])
        price = sum(each.offer.price for each in bought)
        optimal = solved and not hopeless and least >= price - 1e-9
        return Purchase(
            bought,
            round(price, 6),
            self._catalog.currency,
            round(min(least, price) if solved else least, 6),
            OPTIMAL if optimal or (solved and least >= price - 1e-9) else GAP,
            solved and not hopeless and holds,
            None,
            hopeless,
            {each.offer.name: dict(each.offer.daemons) for each in bought if each.offer.daemons},
            self._order_sensitive,
            placements,
            len(self._tried),
        )
