"""Makes pictures of clusters, as the live view gets them."""

from podium.engine.queue.scheduling_queue import Pending
from podium.framework.gang import GangCount
from podium_cluster.up.live_view.browsing import Browsing
from podium_cluster.up.live_view.frame import Size, draw
from podium_cluster.up.live_view.messages import ViewMessage
from podium_cluster.up.live_view.rows import rows_of
from podium_cluster.up.picture import EnginePicture, NodeBar, Picture, PodTotals, QuotaUse, ServedAt
from podium_cluster.up.pod_tracker import PodDecision, PodVerdict

CPU = 10**9
GANGS = [GangCount("shop/training", 5, 4, 0), GangCount("shop/batch", 3, 3, 3)]
QUOTAS = [
    QuotaUse("team-a/quota", "cpu", 6 * CPU, 6 * CPU, 4 * CPU),
    QuotaUse("team-b/quota", "cpu", CPU, 6 * CPU, 4 * CPU),
]
WAITING = [
    PodDecision("shop/bad", PodVerdict.FAILED, why='plugin "T" failed at Score: ZeroDivisionError: division by zero'),
    PodDecision("shop/sib", PodVerdict.HELD, why='plugin "Siblings" holds the pod for up to 1m0s before it goes to n'),
    PodDecision("shop/web", PodVerdict.REFUSED, why="0/3 nodes are available: " + "3 Insufficient cpu. " * 20),
    PodDecision("shop/later", PodVerdict.GATED, why="Scheduling is blocked due to non-empty scheduling gates"),
    PodDecision("shop/new", PodVerdict.UNTRIED),
]
TROUBLE = [ViewMessage("error", 'plugin "T" failed at Score for pod shop/bad (t.py:4): ZeroDivisionError', "", 3)]


def node(name: str, cpu: float | None = 0.5, *, cordoned: bool = False) -> NodeBar:
    if cpu is None:
        return NodeBar(name, "zone-a", None, None, None, cordoned)
    return NodeBar(name, "zone-a", cpu, 0.95, 7, cordoned)


def picture(nodes: int = 12, *, decisions: int = 40, name: str = "worker-{}", silent: float = 0.0) -> Picture:
    engine = EnginePicture([node(name.format(n)) for n in range(nodes)], Pending(3, 2, 1, 0), GANGS, [], silent)
    placed = [PodDecision(f"shop/web-{n}", PodVerdict.PLACED, "worker-1") for n in range(decisions)]
    service = ServedAt("http://127.0.0.1:7070", "/home/you/.local/state/podium/kubeconfig-7070", 75)
    return Picture(service, PodTotals(1040, 1030, 4, 1044), engine, WAITING, placed, QUOTAS)


def drawn(
    shown: Picture, size: Size, browsing: Browsing | None = None, messages: list[ViewMessage] | None = None
) -> list[str]:
    browsing = Browsing() if browsing is None else browsing
    rows = rows_of(shown, TROUBLE if messages is None else messages, browsing.sort, browsing.needle)
    return [line.plain for line in draw(shown, rows, browsing, size)]
