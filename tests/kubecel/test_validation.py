"""Names and labels by the API's rules, with the API's complaints."""

import pytest

from kubecel.names import (
    dns_label_errors,
    dns_subdomain_errors,
    invalid,
    joined,
    label_value_errors,
    not_supported,
    parse_canonical_int64,
    parse_int64,
    qualified_name_errors,
)

NAME_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


@pytest.mark.parametrize(
    "name", ["app", "App_1.x", "example.com/gpu", "a" * 63, "a" * 253 + "/" + "b" * 63, "1.2.3.4/5"]
)
def test_a_qualified_name_is_a_name_with_an_optional_dns_prefix(name: str) -> None:
    assert qualified_name_errors(name) == ()


@pytest.mark.parametrize(
    ("name", "errors"),
    [
        ("", ("name part must be non-empty", f"name part {NAME_RULE}")),
        ("a b", (f"name part {NAME_RULE}",)),
        ("a\n", (f"name part {NAME_RULE}",)),
        ("a" * 64, ("name part must be no more than 63 bytes",)),
        ("/a", ("prefix part must be non-empty",)),
        ("a/", ("name part must be non-empty", f"name part {NAME_RULE}")),
        ("a" * 254 + "/b", ("prefix part must be no more than 253 bytes",)),
        (
            "a/b/c",
            (
                f"a valid label key {NAME_RULE} with an optional DNS subdomain prefix and '/' "
                + "(e.g. 'example.com/MyName')",
            ),
        ),
        (
            "Up/a",
            (
                "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
                "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for "
                r"validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
            ),
        ),
    ],
)
def test_a_bad_qualified_name_is_told_in_the_words_of_the_api(name: str, errors: tuple[str, ...]) -> None:
    assert qualified_name_errors(name) == errors


@pytest.mark.parametrize(("value", "count"), [("", 0), ("a.b_c-d", 0), ("-a", 1), ("a b", 1), ("é" * 40, 2)])
def test_a_label_value_may_be_empty_but_not_odd_or_long(value: str, count: int) -> None:
    assert len(label_value_errors(value)) == count


def test_a_dns_label_has_no_dots_but_a_subdomain_may() -> None:
    assert dns_label_errors("my-name") == ()
    assert dns_label_errors("my.name") == ("must not contain dots",)
    assert dns_subdomain_errors("my.name") == ()
    assert dns_label_errors("a" * 64) == ("must be no more than 63 characters",)
    assert dns_subdomain_errors("a" * 254) == ("must be no more than 253 characters",)
    assert "RFC 1123 label" in dns_label_errors("My_Name")[0]


@pytest.mark.parametrize(
    ("text", "loose", "canonical"),
    [
        ("0", 0, 0),
        ("-5", -5, -5),
        ("+5", 5, None),
        ("007", 7, None),
        ("-0", 0, None),
        ("9223372036854775807", 2**63 - 1, 2**63 - 1),
        ("9223372036854775808", None, None),
        ("-9223372036854775808", -(2**63), -(2**63)),
        ("", None, None),
        ("1_0", None, None),
        (" 1", None, None),
        ("٣", None, None),
        ("1" * 5000, None, None),
    ],
)
def test_integers_are_plain_64_bit_decimals(text: str, loose: int | None, canonical: int | None) -> None:
    assert parse_int64(text) == loose
    assert parse_canonical_int64(text) == canonical


def test_field_errors_read_like_those_of_the_api() -> None:
    assert invalid("spec.x", "a", "is bad") == 'spec.x: Invalid value: "a": is bad'
    assert invalid("spec.x", ("a", "b"), "is bad") == 'spec.x: Invalid value: ["a","b"]: is bad'
    assert invalid("spec.x", (), "is bad") == "spec.x: Invalid value: null: is bad"
    assert not_supported("op", "x", ("In", "Gt")) == 'op: Unsupported value: "x": supported values: "In", "Gt"'
    assert joined(["a"]) == "a"
    assert joined(["a", "b", "a"]) == "[a, b]"
    assert joined(["a", "a"]) == "a"
