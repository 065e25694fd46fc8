"""Warning headers: each warning once, and never more than clients can read."""

from podium_cluster.apiserver.http.warnings import MOST_HEADERS, TOTAL, warning_headers


def test_a_few_warnings_are_sent_as_they_are() -> None:
    assert warning_headers(['unknown field "a"', "b", "b", ""]) == ['299 - "unknown field \\"a\\""', '299 - "b"']


def test_control_characters_never_reach_a_header() -> None:
    assert warning_headers(["a\r\nSet-Cookie: x\x1b[31m"]) == ['299 - "a  Set-Cookie: x [31m"']


def test_many_warnings_fit_into_the_headers_that_clients_read() -> None:
    sent = warning_headers(f"unknown field {number}" for number in range(100))
    assert len(sent) == MOST_HEADERS
    assert ", ".join(sent).count("299 - ") == 100


def test_long_warnings_are_cut_and_the_last_ones_dropped() -> None:
    sent = warning_headers(f"{number} {'x' * 5000}" for number in range(100))
    assert len(sent) == TOTAL // 256
    assert all(len(value) < 300 for value in sent)
