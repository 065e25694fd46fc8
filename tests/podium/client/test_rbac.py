"""The rule that a refusal asks for."""

import pytest

from podium.client import ApiError, missing_rule


@pytest.mark.parametrize(
    ("message", "rule"),
    [
        (
            'pods "a" is forbidden: User "system:serviceaccount:x:podium" cannot create resource "pods/binding" '
            'in API group "" in the namespace "x"',
            'apiGroups: [""], resources: ["pods/binding"], verbs: ["create"]',
        ),
        (
            'leases.coordination.k8s.io "podium" is forbidden: User "u" cannot update resource "leases" '
            'in API group "coordination.k8s.io" in the namespace "kube-system"',
            'apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["update"]',
        ),
        (
            'nodes is forbidden: User "u" cannot watch resource "nodes" in API group "" at the cluster scope: '
            'RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found',
            'apiGroups: [""], resources: ["nodes"], verbs: ["watch"]',
        ),
        ('forbidden: User "u" cannot get path "/metrics"', 'nonResourceURLs: ["/metrics"], verbs: ["get"]'),
        ('pods "a" is forbidden: exceeded quota: q, requested: cpu=1, used: cpu=1, limited: cpu=1', ""),
    ],
)
def test_the_rule_is_read_from_the_message(message: str, rule: str) -> None:
    assert missing_rule(ApiError(403, "Forbidden", message)) == rule


def test_other_errors_ask_for_no_rule() -> None:
    assert missing_rule(ApiError(404, "NotFound", 'cannot get path "/x"')) == ""
