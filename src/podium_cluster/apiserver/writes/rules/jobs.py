"""Prepares Jobs: the server makes the selector and labels that tie pods to their job, unless it selects by hand."""

from typing import Final

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.writes.context import WriteContext
from podium_cluster.apiserver.writes.rules.rule import KindRules

_PREFIX: Final = "batch.kubernetes.io/"


def _prepare_for_create(job: JsonObject, context: WriteContext) -> None:
    spec = job.setdefault("spec", {})
    if spec.get("manualSelector"):
        return
    metadata, template = job["metadata"], spec.setdefault("template", {})
    labels = template.setdefault("metadata", {}).setdefault("labels", {})
    shared = metadata.get("labels") == labels  # labels of the job that were taken over from its pods
    for name, value in (("controller-uid", metadata["uid"]), ("job-name", metadata.get("name", ""))):
        labels.setdefault(f"{_PREFIX}{name}", value)
        labels.setdefault(name, value)
    if shared or not metadata.get("labels"):
        metadata["labels"] = dict(labels)
    selector = spec.setdefault("selector", {})
    selector.setdefault("matchLabels", {})[f"{_PREFIX}controller-uid"] = metadata["uid"]


JOB_RULES: Final = KindRules(prepare_for_create=_prepare_for_create, generation=True, empty_status={})
