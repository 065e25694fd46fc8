"""Writes the help of the live view: its keys, what its parts show, and how the cluster is reached."""

from textwrap import fill

from podium.kube.printable import printable_lines
from podium_cluster.up.live_view.page import Page, rendered_page
from podium_cluster.up.picture import ServedAt

KEYS = {
    "q, Ctrl-C": "end the cluster; on a page, q goes back",
    "Up, Down, j, k": "select a row; past the end of a list, the next one",
    "PgUp, PgDn, Home, End": "go far in a list or on a page",
    "Tab, Shift-Tab": "go to the next list: nodes, waiting, messages, last placed",
    "Enter": "a pod: where it would go and why, or why it goes nowhere; a node: what is on it; a message: all of it",
    "Esc": "back; in the view, clear the filter",
    "/": "filter all lists by what you type",
    "s": "sort the nodes by name, cpu, memory, pods",
    "Ctrl-L": "draw everything again",
    "?": "this help",
}
_WIDTH = max(map(len, KEYS)) + 2


def help_page(service: ServedAt) -> Page:
    def render(width: int) -> str:
        indented = " " * min(_WIDTH, width // 3)
        keys = [fill(f"{key:<{_WIDTH}}{what}", width, subsequent_indent=indented) for key, what in KEYS.items()]
        return printable_lines("\n".join((*keys, "", *_PARTS, "", *_access(service))))

    return rendered_page("keys of the live view", render)


_PARTS = (
    "The bars and percentages of a node say how much of its cpu and memory the requests of its pods take.",
    "A waiting pod is in one of these states:",
    "  error        a plugin failed or gave a wrong answer",
    "  held         it has a node, and a plugin holds it at Permit",
    "  no node      no node takes it; the reason is the scheduler's",
    "  gated        it has scheduling gates, or a plugin keeps it out of the queue",
    "  to be tried  it has not been judged yet",
)


def _access(service: ServedAt) -> tuple[str, ...]:
    return (
        "In another terminal:",
        f"  export KUBECONFIG={service.kubeconfig}",
        "  kubectl get pods -A -o wide",
        "  podium explain NAMESPACE/POD",
    )
