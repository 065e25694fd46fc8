"""Parses label selectors as they are written in a URL, with the API's 400 where the text is not one."""

from podium.kube.selector import Selector, SelectorError, parse_selector
from podium_cluster.apiserver.errors import bad_request


def parse_label_selector(text: str) -> Selector:
    """The selector; StatusError 400 where the text is not one."""
    try:
        return parse_selector(text)
    except SelectorError as error:
        raise bad_request(str(error)) from None
