"""Defines workloads about promises: pods of a thousand controllers with an SLO, with QosAware enabled.

There is room for all of them, so that what is measured is the cost of the account and of the order of the queue. Pods
of one controller do not come one after the other: a fair order has them take turns, and both sides shall have the same.
"""

from __future__ import annotations

from tools.bench.operations import CreateNodes, CreatePods
from tools.bench.templates import POD, pod_template
from tools.bench.workload import case

CONTROLLERS = 1000

CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    queueSort: {enabled: [{name: QosAware}], disabled: [{name: "*"}]}
    postFilter: {enabled: [{name: QosAware}], disabled: [{name: "*"}]}
    reserve: {enabled: [{name: QosAware}]}
    preBind: {enabled: [{name: QosAware}]}
    postBind: {enabled: [{name: QosAware}]}
  pluginConfig:
  - name: QosAware
    args: {safetyMargin: 30s, minimumRunningTime: 30s}
"""

PROMISED_POD = pod_template(
    metadata={"annotations": {"controller": "controller-<controller>", "slo": "0.9", "qosMeasuring": "average"}},
    controller=lambda index, _count: index % CONTROLLERS,
)

PROMISES = case(
    "Promises",
    [CreateNodes("nodes"), CreatePods("init", POD), CreatePods("measured", PROMISED_POD, measured=True)],
    {"5000Nodes_1000Controllers_10000Pods": {"nodes": 5000, "init": 1000, "measured": 10_000}},
    config=CONFIG,
)
