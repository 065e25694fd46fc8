"""What reaches standard error, in both formats: nothing secret, nothing that acts on a terminal, whoever logs it."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from aiohttp.http_exceptions import BadHttpMessage

from podium.serving.log import FORMATS, LIBRARIES, LOG, TRACE, PodiumHandler, set_up

SECRET = "pl4nted-s3cret"


@pytest.fixture(params=FORMATS)
def written(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    stream, root = io.StringIO(), logging.getLogger()
    before, level, propagate = list(root.handlers), LOG.level, LOG.propagate
    levels = {name: logging.getLogger(name).level for name in ("", *LIBRARIES)}
    monkeypatch.setattr("sys.stderr", stream)
    set_up(request.param, "info")
    try:
        yield stream
    finally:
        root.handlers[:], LOG.handlers[:], LOG.propagate = before, [], propagate
        LOG.setLevel(level)
        for name, before_level in levels.items():
            logging.getLogger(name).setLevel(before_level)


def lines(stream: io.StringIO) -> list[str]:
    """The messages, in whichever format; each line of JSON must be JSON."""
    return [
        str(json.loads(each)["message"]) if each.startswith("{") else each for each in stream.getvalue().splitlines()
    ]


def test_a_message_is_one_line_that_cannot_act_on_a_terminal(written: io.StringIO) -> None:
    LOG.warning("pod %s failed", "a\x1b]0;owned\x07\nERROR forged\x9b2J\u202e")
    text = written.getvalue()
    assert len(text.splitlines()) == 1
    assert text.rstrip("\n").isprintable()


def test_half_characters_do_not_break_the_log(written: io.StringIO) -> None:
    """Handed to the handler itself: pytest would capture the record, and could not send it from process to process."""
    handler = next(each for each in LOG.handlers if isinstance(each, PodiumHandler))
    fields = {"msg": "path %s", "args": ("\udcff",), "levelno": logging.WARNING, "levelname": "WARNING"}
    handler.handle(logging.makeLogRecord({**fields, "fields": {"path": "\udcff"}}))
    assert "udcff" in written.getvalue()


@pytest.mark.parametrize(
    "text", [f"Authorization: Bearer {SECRET}", f"http://user:{SECRET}@host/", f"{{'Authorization': 'Basic {SECRET}'}}"]
)
def test_credentials_are_hidden_in_messages_fields_and_traces(written: io.StringIO, text: str) -> None:
    LOG.warning("%s", text, extra={"fields": {"error": text}})
    try:
        raise ValueError(text)
    except ValueError:
        LOG.exception("it failed")
        logging.getLogger("some.library").exception("it failed")
    assert lines(written)
    assert "ValueError" in written.getvalue()
    assert SECRET not in written.getvalue()


@pytest.mark.parametrize(("level", "shown"), [("info", False), ("debug", True)])
def test_a_malformed_request_is_not_quoted(written: io.StringIO, level: str, shown: bool) -> None:
    LOG.setLevel(level.upper())
    error: Any = BadHttpMessage(f"invalid header X-Api-Key: {SECRET}")
    logging.getLogger("aiohttp.server").error("Error handling request from %s", "1.2.3.4", exc_info=error)
    assert SECRET not in written.getvalue()
    assert ("malformed request" in written.getvalue()) is shown


def test_what_libraries_of_podium_log_below_a_warning_is_left_out(written: io.StringIO) -> None:
    logging.getLogger("aiohttp.server").info("chatter")
    logging.getLogger("aiohttp.server").warning("worth reading")
    assert len(lines(written)) == 1


def test_what_a_plugin_logs_is_shown_at_the_level_asked_for(
    written: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr", written)
    for level in ("trace", "debug", "info"):
        set_up("text", level)
        logging.getLogger("plugin.of.mine").info("at %s", level)
        logging.getLogger("plugin.of.mine").debug("debug at %s", level)
        logging.getLogger("plugin.of.mine").log(TRACE, "trace at %s", level)
    shown = [line.split(maxsplit=3)[3] for line in written.getvalue().splitlines()]
    assert shown == ["at trace", "debug at trace", "trace at trace", "at debug", "debug at debug", "at info"]


def test_a_text_of_megabytes_is_cut_wherever_it_is_logged(written: io.StringIO) -> None:
    long = "x" * 2_000_000
    LOG.warning("binding failed: %s", long, extra={"fields": {"error": long}})
    try:
        raise ValueError(long)
    except ValueError:
        LOG.exception("it failed")
    assert len(written.getvalue()) < 100_000
    assert "characters)" in written.getvalue()
