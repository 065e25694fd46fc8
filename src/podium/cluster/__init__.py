"""The columnar state of a cluster: nodes as rows, everything scheduling compares as arrays over them.

What is listed in `__all__` is part of the plugin contract: plugins import it from here, not from the modules below.
"""

from podium.cluster.columns import Column, Interned
from podium.cluster.counts import CountColumn, PodQuery, QueryTerm
from podium.cluster.facts import HostPort, PodFacts
from podium.cluster.journal import Cursor, Journal, RowCursor
from podium.cluster.objects import Objects, Store
from podium.cluster.resources import ALLOCATABLE, CORE_RESOURCES, CPU, EPHEMERAL_STORAGE, MEMORY, REQUESTED, Amounts
from podium.cluster.state import Cluster, ClusterError, PlacedPod
from podium.cluster.terms import Term, TermGroup, TermKind
from podium.cluster.view import Mask, NodeInfo, Nodes, Rows

__all__ = [
    "ALLOCATABLE",
    "CORE_RESOURCES",
    "CPU",
    "EPHEMERAL_STORAGE",
    "MEMORY",
    "REQUESTED",
    "Amounts",
    "Cluster",
    "ClusterError",
    "Column",
    "CountColumn",
    "Cursor",
    "HostPort",
    "Interned",
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
