"""Nodes: who creates one may say its status too, as a kubelet does when it registers."""

from typing import Final

from podium.apiserver.rules.rule import Rules

NODE_RULES: Final = Rules(status_on_create=True, empty_status={})
