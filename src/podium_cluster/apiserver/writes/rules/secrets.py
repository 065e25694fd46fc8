"""Prepares Secrets: text in `stringData` is stored, encoded, in `data`, and never read back as text."""

import base64
from typing import Final

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.writes.context import WriteContext
from podium_cluster.apiserver.writes.rules.rule import KindRules


def _encode_texts(obj: JsonObject, context: WriteContext) -> None:
    texts = obj.pop("stringData", None)
    if texts:
        encoded = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
        obj["data"] = {**(obj.get("data") or {}), **encoded}


def _prepare_for_update(new: JsonObject, old: JsonObject, context: WriteContext) -> None:
    _encode_texts(new, context)


SECRET_RULES: Final = KindRules(prepare_for_create=_encode_texts, prepare_for_update=_prepare_for_update)
