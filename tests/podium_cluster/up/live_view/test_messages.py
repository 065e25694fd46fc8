"""What is said while the view covers the terminal is kept, trouble first, and nothing of it acts on the terminal."""

import io
import logging

from podium_cluster.up.live_view.messages import MOST, MessageLog, Messages, PrintedLines


def logger_to(messages: Messages) -> logging.Logger:
    logger = logging.getLogger(__name__)
    logger.handlers[:] = [MessageLog(messages, logging.Formatter("%(levelname)s %(message)s"))]
    logger.propagate = False
    return logger


def test_trouble_comes_first_and_is_not_driven_out_by_prints() -> None:
    messages = Messages()
    logger_to(messages).error("a plugin failed")
    printed = PrintedLines(messages, io.StringIO())
    for number in range(2 * MOST):
        printed.write(f"scoring {number}\n")
    newest = messages.newest_first()
    assert (newest[0].headline, newest[0].level, newest[1].headline) == ("a plugin failed", "error", "scoring 199")
    assert len(newest) == MOST + 1


def test_an_exception_has_a_headline_and_its_traceback() -> None:
    messages = Messages()
    try:
        _ = 1 / 0
    except ZeroDivisionError:
        logger_to(messages).exception("plugin %s failed", "T")
    (message,) = messages.newest_first()
    assert message.headline == "plugin T failed"
    assert "_ = 1 / 0" in message.text
    assert message.text.endswith("ZeroDivisionError: division by zero")


def test_the_same_again_is_counted() -> None:
    messages = Messages()
    for text in ("a", "b", "a"):
        messages.add(text)
    assert [(each.text, each.times) for each in messages.newest_first()] == [("a", 2), ("b", 1)]
    assert list(messages.texts()) == ["b", "a (×2)"]


def test_what_is_printed_is_a_message_for_each_line_and_shows_control_characters() -> None:
    messages = Messages()
    printed = PrintedLines(messages, io.StringIO())
    for part in ("one\ntw", "o\n\n", "\x1b[2Jthree", "\n", "four"):
        printed.write(part)
    assert [each.text for each in reversed(messages.newest_first())] == ["one", "two", r"\x1b[2Jthree"]
