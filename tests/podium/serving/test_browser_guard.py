"""What tells a web page's request from a program's."""

import pytest

from podium.serving.browser_guard import BrowserGuard, accepts_type

PROGRAM = BrowserGuard("127.0.0.1")
WITH_PAGES = BrowserGuard("127.0.0.1", names=["podium.test"], own_pages=True)
OPEN = BrowserGuard("0.0.0.0")


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("127.0.0.1:5401", True),
        ("127.0.0.1", True),
        ("127.8.9.1:80", True),
        ("localhost:5401", True),
        ("LOCALHOST.", True),
        ("[::1]:5401", True),
        (None, True),
        ("", True),
        ("evil.example:5401", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("127.0.0.1@evil.example", False),
        ("10.0.0.7", False),
        ("0x7f000001", False),
        ("[::1", True),
        ("[evil]", False),
        ("\x00", False),
    ],
)
def test_on_loopback_only_loopback_names_are_answered(host: str | None, allowed: bool) -> None:
    assert (PROGRAM.refusal(host, None) is None) is allowed


def test_a_name_that_was_given_is_answered_to() -> None:
    assert WITH_PAGES.refusal("podium.test:7070", None) is None
    assert PROGRAM.refusal("podium.test:7070", None) is not None


def test_on_another_address_any_name_is_answered_but_no_page() -> None:
    assert OPEN.refusal("extender.kube-system.svc:5401", None) is None
    assert OPEN.refusal("evil.example:5401", "http://evil.example:5401") is not None


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "", "http://127.0.0.1:1", "file://", "http://"])
def test_a_page_of_another_origin_is_refused(origin: str) -> None:
    for guard in (PROGRAM, WITH_PAGES, OPEN):
        assert guard.refusal("127.0.0.1:7070", origin) is not None


def test_own_pages_are_answered_where_there_are_some() -> None:
    assert WITH_PAGES.refusal("127.0.0.1:7070", "http://127.0.0.1:7070", "same-origin") is None
    assert PROGRAM.refusal("127.0.0.1:7070", "http://127.0.0.1:7070") is not None
    assert WITH_PAGES.refusal("evil.example:7070", "http://evil.example:7070", "same-origin") is not None


@pytest.mark.parametrize(
    ("site", "refused"), [("cross-site", True), ("same-site", True), ("none", False), (None, False)]
)
def test_what_a_page_of_another_site_fetches_is_refused(site: str | None, refused: bool) -> None:
    assert (WITH_PAGES.refusal("127.0.0.1", None, site) is not None) is refused


def test_a_refusal_shows_no_control_characters() -> None:
    assert "\x1b" not in (PROGRAM.refusal("\x1b[31m", None) or "")


@pytest.mark.parametrize(
    ("content_type", "accepted"),
    [
        ("application/json", True),
        ("Application/JSON; charset=utf-8", True),
        ("application/yaml", True),
        (None, False),
        ("", False),
        ("text/plain", False),
        ("application/x-www-form-urlencoded", False),
        ("text/plain; application/json", False),
    ],
)
def test_writes_name_a_type_that_pages_cannot_send_unasked(content_type: str | None, accepted: bool) -> None:
    assert accepts_type(content_type, ["application/json", "application/yaml"]) is accepted
