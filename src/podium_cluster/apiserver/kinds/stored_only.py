"""Lists the kinds that are stored, and that is all: nothing in an embedded cluster acts on them."""

from __future__ import annotations

from typing import Final

from podium_cluster.apiserver.kind import STATUS, Defaults, Subresource, inert_kind
from podium_cluster.apiserver.kind_record import KindRecord
from podium_cluster.apiserver.kinds.jobs import JOB_DEFAULTS
from podium_cluster.apiserver.kinds.pods.defaults import POD_DEFAULTS

POD_TEMPLATE: Final = KindRecord(inert_kind("v1", "PodTemplate podtemplates", defaults=POD_DEFAULTS))
HORIZONTAL_POD_AUTOSCALER: Final = KindRecord(
    inert_kind(
        "autoscaling/v2", "HorizontalPodAutoscaler horizontalpodautoscalers", STATUS, short="hpa", categories="all"
    )
)
CRON_JOB: Final = KindRecord(
    inert_kind(
        "batch/v1",
        "CronJob cronjobs",
        STATUS,
        short="cj",
        categories="all",
        defaults=JOB_DEFAULTS
        | Defaults(
            {
                "batch.v1.CronJobSpec": {
                    "concurrencyPolicy": "Allow",
                    "suspend": False,
                    "successfulJobsHistoryLimit": 3,
                    "failedJobsHistoryLimit": 1,
                }
            }
        ),
    )
)
INGRESS_CLASS: Final = KindRecord(inert_kind("networking.k8s.io/v1", "IngressClass ingressclasses", cluster=True))
INGRESS: Final = KindRecord(inert_kind("networking.k8s.io/v1", "Ingress ingresses", STATUS, short="ing"))
NETWORK_POLICY: Final = KindRecord(inert_kind("networking.k8s.io/v1", "NetworkPolicy networkpolicies", short="netpol"))


def _admission(names: str, *parts: Subresource) -> KindRecord:
    where = "admissionregistration.k8s.io/v1"
    return KindRecord(inert_kind(where, names, *parts, categories="api-extensions", cluster=True))


ADMISSION: Final = (
    _admission("MutatingAdmissionPolicy mutatingadmissionpolicies"),
    _admission("MutatingAdmissionPolicyBinding mutatingadmissionpolicybindings"),
    _admission("MutatingWebhookConfiguration mutatingwebhookconfigurations"),
    _admission("ValidatingAdmissionPolicy validatingadmissionpolicies", STATUS),
    _admission("ValidatingAdmissionPolicyBinding validatingadmissionpolicybindings"),
    _admission("ValidatingWebhookConfiguration validatingwebhookconfigurations"),
)
