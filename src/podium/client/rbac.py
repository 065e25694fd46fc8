"""Finds the RBAC rule that would have allowed a refused request.

The API server says what it missed in one sentence of fixed form; the rule to add is more useful to the reader:

    pods "a" is forbidden: User "u" cannot create resource "pods/binding" in API group "" in the namespace "x"
    → apiGroups: [""], resources: ["pods/binding"], verbs: ["create"]
"""

import re

from podium.client.errors import ApiError

_RESOURCE = re.compile(r'cannot (\w+) resource "([^"]+)" in API group "([^"]*)"')
_PATH = re.compile(r'cannot (\w+) path "([^"]+)"')


def missing_rule(error: ApiError) -> str:
    """The rule to add to a Role or ClusterRole; empty where no rule would help (a quota, an admission webhook)."""
    if not error.forbidden:
        return ""
    if found := _RESOURCE.search(error.message):
        verb, resource, group = found.groups()
        return f'apiGroups: ["{group}"], resources: ["{resource}"], verbs: ["{verb}"]'
    if found := _PATH.search(error.message):
        verb, path = found.groups()
        return f'nonResourceURLs: ["{path}"], verbs: ["{verb}"]'
    return ""
