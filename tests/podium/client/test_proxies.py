"""Which proxy is used, by the rules Go programs follow."""

import pytest
from yarl import URL

from podium.client.loading import proxy_from_environment

PROXY = "http://proxy:3128"


@pytest.mark.parametrize(
    ("server", "environment", "proxy"),
    [
        ("https://api:6443", {"HTTPS_PROXY": PROXY}, PROXY),
        ("https://api:6443", {"https_proxy": PROXY}, PROXY),
        ("https://api:6443", {"HTTP_PROXY": PROXY}, None),
        ("http://api:8080", {"HTTP_PROXY": PROXY}, PROXY),
        ("https://api:6443", {"HTTPS_PROXY": "proxy:3128"}, PROXY),
        ("https://api:6443", {}, None),
        ("https://127.0.0.1:6443", {"HTTPS_PROXY": PROXY}, None),
        ("https://[::1]:6443", {"HTTPS_PROXY": PROXY}, None),
        ("https://localhost:6443", {"HTTPS_PROXY": PROXY}, None),
    ],
)
def test_the_variable_for_the_scheme_names_the_proxy(
    server: str, environment: dict[str, str], proxy: str | None
) -> None:
    assert proxy_from_environment(URL(server), environment) == proxy


@pytest.mark.parametrize(
    ("server", "exceptions", "direct"),
    [
        ("https://api.example.com:6443", "example.com", True),
        ("https://example.com:6443", "example.com", True),
        ("https://badexample.com:6443", "example.com", False),
        ("https://example.com:6443", ".example.com", False),
        ("https://api.example.com:6443", ".example.com", True),
        ("https://api.example.com:6443", "*.example.com", True),
        ("https://api.example.com:6443", "other, EXAMPLE.com ", True),
        ("https://api.example.com:6443", "example.com:443", False),
        ("https://api.example.com:6443", "example.com:6443", True),
        ("https://10.1.2.3:6443", "10.0.0.0/8", True),
        ("https://11.1.2.3:6443", "10.0.0.0/8", False),
        ("https://10.1.2.3:6443", "10.1.2.3", True),
        ("https://10.1.2.3:6443", "10.1.2.3:443", False),
        ("https://[fd00::1]:6443", "fd00::/8", True),
        ("https://[fd00::1]:6443", "[fd00::1]:6443", True),
        ("https://api:6443", "*", True),
        ("https://api:6443", "", False),
        ("https://api:6443", ",", False),
    ],
)
def test_exceptions_are_reached_directly(server: str, exceptions: str, direct: bool) -> None:
    found = proxy_from_environment(URL(server), {"HTTPS_PROXY": PROXY, "NO_PROXY": exceptions})
    assert found == (None if direct else PROXY)
