"""Knows the rules of the Kubernetes minor whose real components the test bed builds."""

from podium.kube.versions import find_rules
from tools.testbed.build import KUBERNETES_VERSION

REAL_RULES = find_rules(KUBERNETES_VERSION).rules
