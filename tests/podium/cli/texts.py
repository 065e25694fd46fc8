"""Short texts of files that the tests of several commands hand in."""

from pathlib import Path

SAMPLE = "sample:cluster"
HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def node(name: str, *, cpu: int = 4, labels: str = "{}") -> str:
    return f"""
apiVersion: v1
kind: Node
metadata: {{name: {name}, labels: {labels}}}
status: {{allocatable: {{cpu: {cpu}, memory: 8Gi, pods: 110}}}}
"""


def pod(name: str, *, spec: str = "containers: [{name: c, image: app}]", namespace: str = "default") -> str:
    return f"""
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: {namespace}}}
spec: {{{spec}}}
"""


def requesting(cpu: str, more: str = "") -> str:
    """A pod's spec that asks for cpu."""
    return f"containers: [{{name: c, image: app, resources: {{requests: {{cpu: {cpu}}}}}}}]{', ' * bool(more)}{more}"


def documents(*parts: str) -> str:
    return "---".join(parts)


def write(folder: Path, name: str, text: str) -> str:
    file = folder / name
    file.write_text(text)
    return str(file)
