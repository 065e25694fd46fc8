import pytest

from podium.config.names import is_extended_resource_name, qualified_name_errors

NAME_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
OPTIONAL_PREFIX = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
PREFIX_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


@pytest.mark.parametrize(
    ("name", "errors"),
    [
        ("cpu", []),
        ("example.com/gpu", []),
        ("example.com/" + "a" * 63, []),
        ("example.com/" + "a" * 64, ["name part must be no more than 63 bytes"]),
        ("", ["name part must be non-empty", f"name part {NAME_RULE}"]),
        ("example.com/", ["name part must be non-empty", f"name part {NAME_RULE}"]),
        ("-gpu", [f"name part {NAME_RULE}"]),
        ("gpu\n", [f"name part {NAME_RULE}"]),
        ("/gpu", ["prefix part must be non-empty"]),
        ("Example.com/gpu", [f"prefix part {PREFIX_RULE}"]),
        ("a" * 254 + "/gpu", ["prefix part must be no more than 253 bytes"]),
        (
            "a/b/c",
            [f"a valid label key {NAME_RULE} {OPTIONAL_PREFIX}"],
        ),
    ],
)
def test_a_qualified_name_is_a_name_with_an_optional_dns_prefix(name: str, errors: list[str]) -> None:
    assert qualified_name_errors(name) == errors


@pytest.mark.parametrize(
    ("name", "extended"),
    [
        ("example.com/gpu", True),
        ("cpu", False),
        ("kubernetes.io/thing", False),
        ("sub.kubernetes.io/thing", False),
        ("requests.example.com/gpu", False),
        ("a" * 245 + ".com/gpu", False),  # too long once it is a quota name
    ],
)
def test_an_extended_resource_has_a_prefix_that_is_not_kubernetes_own(name: str, extended: bool) -> None:
    assert is_extended_resource_name(name) is extended
