"""The columnar state of a cluster: nodes as rows, everything scheduling compares as arrays over them."""

from podium.cluster.counts import CountColumn, PodQuery, QueryTerm
from podium.cluster.facts import HostPort, PodFacts
from podium.cluster.journal import Cursor, Journal, RowCursor
from podium.cluster.objects import Objects, Store
from podium.cluster.state import Cluster, ClusterError, PlacedPod
from podium.cluster.terms import Term, TermGroup, TermKind
from podium.cluster.view import Mask, NodeInfo, Nodes, Rows

__all__ = [
    "Cluster",
    "ClusterError",
    "CountColumn",
    "Cursor",
    "HostPort",
    "Journal",
    "Mask",
    "NodeInfo",
    "Nodes",
    "Objects",
    "PlacedPod",
    "PodFacts",
    "PodQuery",
    "QueryTerm",
    "RowCursor",
    "Rows",
    "Store",
    "Term",
    "TermGroup",
    "TermKind",
]
