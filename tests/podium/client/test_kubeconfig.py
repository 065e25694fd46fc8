"""Kubeconfigs: which entry counts, where paths lead, and the sentence for each thing that can be wrong."""

import asyncio
import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from podium.client import Access, AccessError, load_access
from podium.client.credentials import Identity
from tools.testbed.certificates import CertificateAuthority

SECRET = "s3cr3t-t0k3n"


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of this machine's own kubeconfig, proxies or service account."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "POD_NAMESPACE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture
def authority(tmp_path: Path) -> CertificateAuthority:
    (tmp_path / "pki").mkdir()
    return CertificateAuthority(tmp_path / "pki")


def kubeconfig(
    path: Path,
    *,
    name: str = "c",
    cluster: Mapping[str, Any] | None = None,
    user: Mapping[str, Any] | None = None,
    context: Mapping[str, Any] | None = None,
    current: str | None = None,
) -> Path:
    """A kubeconfig with one context, cluster and user, all called `name`."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name if current is None else current,
        "clusters": [{"name": name, "cluster": {"server": "https://api:6443", **(cluster or {})}}],
        "users": [{"name": name, "user": {**(user or {})}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, **(context or {})}}],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content))
    return path


def identity(access: Access) -> Identity:
    async def main() -> None:
        await access.refresh()

    asyncio.run(main())
    assert access._identity is not None
    return access._identity


def encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def test_a_token_becomes_a_header(tmp_path: Path) -> None:
    access = load_access(str(kubeconfig(tmp_path / "c", user={"token": SECRET}, context={"namespace": "ns"})))
    assert access.server == "https://api:6443"
    assert access.namespace == "ns"
    assert access.headers == (("Authorization", f"Bearer {SECRET}"),)
    assert SECRET not in repr(access)
    assert SECRET not in repr(identity(access))


def test_a_name_and_password_become_a_header(tmp_path: Path) -> None:
    access = load_access(str(kubeconfig(tmp_path / "c", user={"username": "jane", "password": "ä"})))
    assert access.headers == (("Authorization", "Basic " + base64.b64encode("jane:ä".encode()).decode()),)


def test_over_plain_http_no_credentials_are_sent(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "c", cluster={"server": "http://api:8080"}, user={"token": SECRET})
    access = load_access(str(path))
    assert access.headers == ()
    assert access.tls is None


def test_impersonation_becomes_headers(tmp_path: Path) -> None:
    user = {
        "as": "jane",
        "as-uid": "u1",
        "as-groups": ["dev", "ops"],
        "as-user-extra": {"acme.com/project": ["p1", "p2"]},
    }
    assert load_access(str(kubeconfig(tmp_path / "c", user=user))).headers == (
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "u1"),
        ("Impersonate-Group", "dev"),
        ("Impersonate-Group", "ops"),
        ("Impersonate-Extra-acme.com%2Fproject", "p1"),
        ("Impersonate-Extra-acme.com%2Fproject", "p2"),
    )


def test_paths_lead_from_the_file_they_stand_in(tmp_path: Path, authority: CertificateAuthority) -> None:
    authority.issue("jane")
    (tmp_path / "pki" / "token").write_text(f"{SECRET}\n")
    path = kubeconfig(
        tmp_path / "configs" / "c",
        cluster={"certificate-authority": "../pki/ca.crt"},
        user={
            "client-certificate": "../pki/jane.crt",
            "client-key": "../pki/jane.key",
            "tokenFile": "../pki/token",
        },
    )
    found = identity(load_access(str(path)))
    assert found.certificate == (tmp_path / "pki" / "jane.crt").read_bytes()
    assert found.authorization == f"Bearer {SECRET}"


def test_embedded_data_wins_over_files(tmp_path: Path, authority: CertificateAuthority) -> None:
    pair = authority.issue("jane")
    path = kubeconfig(
        tmp_path / "c",
        cluster={"certificate-authority": "missing", "certificate-authority-data": encoded(authority.certificate)},
        user={
            "client-certificate": "missing",
            "client-certificate-data": encoded(pair.certificate),
            "client-key": "missing",
            "client-key-data": encoded(pair.key),
        },
    )
    assert identity(load_access(str(path))).key == pair.key.read_bytes()


def test_a_token_file_wins_over_a_token_which_stands_in_for_it(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-file")
    path = str(kubeconfig(tmp_path / "c", user={"token": "fixed", "tokenFile": "token"}))
    assert identity(load_access(path)).authorization == "Bearer from-file"
    (tmp_path / "token").unlink()
    assert identity(load_access(path)).authorization == "Bearer fixed"


def test_the_first_of_several_files_wins_entry_by_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = kubeconfig(tmp_path / "1", name="a", user={"token": "first"}, current="")
    second = kubeconfig(tmp_path / "2", name="a", user={"token": "second", "as": "jane"}, current="b")
    third = kubeconfig(tmp_path / "3", name="b", cluster={"server": "https://b:1"}, user={"token": "third"})
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'missing'}::{first}:{second}:{third}")
    access = load_access()
    assert (access.server, access.headers) == ("https://b:1", (("Authorization", "Bearer third"),))
    access = load_access(context="a")
    assert (access.server, access.headers) == ("https://api:6443", (("Authorization", "Bearer first"),))


def test_a_context_may_refer_to_another_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "2" / "token").parent.mkdir()
    (tmp_path / "2" / "token").write_text("there")
    first = kubeconfig(tmp_path / "1" / "c", name="a", context={"user": "b"})
    second = kubeconfig(tmp_path / "2" / "c", name="b", user={"tokenFile": "token"})
    monkeypatch.setenv("KUBECONFIG", f"{first}:{second}")
    assert identity(load_access()).authorization == "Bearer there"


def test_without_variables_the_file_at_home_is_used(tmp_path: Path) -> None:
    kubeconfig(tmp_path / "home" / ".kube" / "config", cluster={"server": "https://home:6443"})
    assert load_access().server == "https://home:6443"


def test_master_replaces_the_server_and_the_name_it_was_known_by(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "c", cluster={"tls-server-name": "other"}, user={"token": SECRET})
    assert load_access(str(path)).route.tls_server_name == "other"
    access = load_access(str(path), master="https://127.0.0.1:1")
    assert (access.server, access.route.tls_server_name) == ("https://127.0.0.1:1", None)
    assert access.headers == (("Authorization", f"Bearer {SECRET}"),)


def test_master_alone_is_asked_anonymously() -> None:
    access = load_access(master="http://127.0.0.1:8080/")
    assert (access.server, access.headers) == ("http://127.0.0.1:8080", ())


@pytest.mark.parametrize(
    ("server", "more", "url"),
    [
        ("https://api:6443/", {}, "https://api:6443"),
        ("https://api/k8s/clusters/c-1?x=y#z", {}, "https://api/k8s/clusters/c-1"),
        ("api:6443", {"insecure-skip-tls-verify": True}, "https://api:6443"),
        ("api:8080", {}, "http://api:8080"),
        ("https://[fd00::1]:6443", {}, "https://[fd00::1]:6443"),
    ],
)
def test_servers_are_written_in_many_ways(tmp_path: Path, server: str, more: dict[str, Any], url: str) -> None:
    assert load_access(str(kubeconfig(tmp_path / "c", cluster={"server": server, **more}))).server == url


def test_a_proxy_of_the_kubeconfig_wins_over_the_environments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://environment:1")
    assert load_access(str(kubeconfig(tmp_path / "c"))).route.proxy == "http://environment:1"
    path = kubeconfig(tmp_path / "c", cluster={"proxy-url": "http://user:pw@own:2", "disable-compression": True})
    access = load_access(str(path))
    assert (access.route.proxy, access.route.compression) == ("http://user:pw@own:2", False)


def test_fields_nobody_knows_and_empty_ones_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "c"
    path.write_text(
        "current-context: c\npreferences: {colors: true}\nextensions:\n"
        "clusters: [{name: c, cluster: {server: 'https://api:6443', extensions: null, future: 1}}]\n"
        "contexts: [{name: c, context: {cluster: c, user: c, namespace: }}]\n"
        "users: [{name: c, user: {token: }}]\n"
    )
    assert load_access(str(path)).headers == ()


def test_a_user_without_a_home_has_no_kubeconfig_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)  # as for the user of a container
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    with pytest.raises(AccessError, match="token is missing"):
        load_access(service_account=tmp_path)


def test_a_pod_finds_its_service_account(
    tmp_path: Path, authority: CertificateAuthority, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "pki"
    (folder / "token").write_text(SECRET)
    (folder / "namespace").write_text("kube-system\n")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    access = load_access(service_account=folder)
    assert access.server == "https://[fd00::1]:443"
    assert access.namespace == "kube-system"
    assert access.headers == (("Authorization", f"Bearer {SECRET}"),)
    monkeypatch.setenv("POD_NAMESPACE", "mine")
    assert load_access(service_account=folder).namespace == "mine"
    (folder / "token").unlink()
    with pytest.raises(AccessError, match="automountServiceAccountToken: true"):
        load_access(service_account=folder)


def test_without_anything_it_says_what_to_give() -> None:
    with pytest.raises(AccessError, match=r"give --kubeconfig FILE, set \$KUBECONFIG, or write .*/\.kube/config"):
        load_access()


def test_a_list_of_files_none_of_which_exists_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/no/such:/nor/this")
    with pytest.raises(AccessError, match=r"\$KUBECONFIG names /no/such, /nor/this, which does not exist"):
        load_access()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "cannot be read: No such file"),
        (b"\xff\xfe\x00", "not UTF-8 text"),
        (f"users: [{{token: {SECRET}".encode(), "is not YAML: line"),
        (f"token: {SECRET}\n\tx".encode(), "is not YAML"),
        (b"", "no kubeconfig"),
        (b"- a", "no kubeconfig"),
        (b"kind: Pod", "kind is 'Pod' and must be Config"),
        (b"users: {a: b}", "users: expected `array`, got `object`"),
        (b"users: [{name: a, user: {token: 17}}]", r"users\[0\]\.user\.token: expected `str`, got `int`"),
        (
            b"clusters: [{name: a, cluster: {insecure-skip-tls-verify: 'yes'}}]",
            r"clusters\[0\]\.cluster\.insecure-skip-tls-verify: expected `bool`, got `str`",
        ),
        (b"contexts: []", "current-context is not set, and there are no contexts: add one"),
        (b"current-context: x\ncontexts: [{name: a}, {name: b}]", "there is no context 'x': there are 'a', 'b'"),
        (b"current-context: a\ncontexts: [{name: a}]", "context 'a': its cluster '' is not in the file"),
        (
            b"current-context: a\ncontexts: [{name: a, context: {cluster: k, user: u}}]\nclusters: [{name: k}]",
            "context 'a': its user 'u' is not in the file: there are none",
        ),
        (
            b"current-context: a\ncontexts: [{name: a, context: {cluster: k}}]\nclusters: [{name: k}]",
            "cluster 'k': server is missing: write https://HOST:6443",
        ),
    ],
)
def test_a_file_that_is_none_is_told_in_one_sentence(tmp_path: Path, text: bytes | None, says: str) -> None:
    path = tmp_path / "c"
    if text is not None:
        path.write_bytes(text)
    with pytest.raises(AccessError, match=says) as wrong:
        load_access(str(path))
    check_sentence(str(wrong.value), path)


def check_sentence(sentence: str, path: Path) -> None:
    assert sentence.startswith(str(path))
    assert SECRET not in sentence
    assert "\n" not in sentence


PEM = base64.b64encode(b"-----BEGIN CERTIFICATE-----\nxx\n-----END CERTIFICATE-----\n").decode()
KEY = base64.b64encode(b"-----BEGIN PRIVATE KEY-----\nxx\n-----END PRIVATE KEY-----\n").decode()
LOCKED = base64.b64encode(b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nxx\n-----END ENCRYPTED PRIVATE KEY-----\n").decode()
NOT_PEM = base64.b64encode(SECRET.encode()).decode()


@pytest.mark.parametrize(
    ("cluster", "user", "says"),
    [
        ({"server": "ftp://api"}, {}, "cluster 'c': server 'ftp://api' is no address"),
        ({"server": "https://"}, {}, "is no address"),
        ({"server": "https://api:port"}, {}, "is no address"),
        ({"server": f"https://jane:{SECRET}@api"}, {}, "write them as username and password of the user"),
        ({"certificate-authority": "gone.crt"}, {}, "certificate-authority .*gone.crt cannot be read: No such file"),
        ({"certificate-authority-data": "%%%"}, {}, "certificate-authority-data is not base64"),
        ({"certificate-authority-data": NOT_PEM}, {}, "certificate-authority-data holds no PEM certificate"),
        ({"certificate-authority-data": PEM}, {}, "certificate-authority-data holds no PEM certificate"),
        (
            {"certificate-authority-data": PEM, "insecure-skip-tls-verify": True},
            {},
            "insecure-skip-tls-verify and certificate-authority exclude each other",
        ),
        ({"proxy-url": f"socks5://u:{SECRET}@proxy"}, {}, "proxy-url is not usable: write http://HOST:PORT"),
        ({"proxy-url": "proxy"}, {}, "proxy-url is not usable"),
        ({}, {"tokenFile": "gone"}, "tokenFile .*gone cannot be read: No such file"),
        ({}, {"token": SECRET, "username": "jane"}, "token and username exclude each other"),
        ({}, {"token": f"{SECRET}\nx"}, "line break"),
        ({}, {"client-certificate-data": PEM}, "client-key is missing"),
        ({}, {"client-key-data": KEY}, "client-certificate is missing"),
        ({}, {"client-certificate": "gone", "client-key": "gone"}, "client-certificate .*gone cannot be read"),
        ({}, {"client-certificate-data": "x", "client-key-data": KEY}, "client-certificate-data is not base64"),
        ({}, {"client-certificate-data": NOT_PEM, "client-key-data": KEY}, "the certificate is not PEM"),
        ({}, {"client-certificate-data": PEM, "client-key-data": NOT_PEM}, "the key is not PEM"),
        ({}, {"client-certificate-data": PEM, "client-key-data": LOCKED}, "the key is encrypted"),
        ({}, {"client-certificate-data": PEM, "client-key-data": KEY}, "the certificate or its key is damaged"),
        ({}, {"as": "jane", "as-groups": ["a\nX-Header: b"]}, "may have no line breaks"),
        ({}, {"as-groups": ["a"]}, "need a user to act as: write as"),
        ({}, {"auth-provider": {"name": "gcp"}}, "auth-provider 'gcp' is not supported: use exec"),
        ({}, {"exec": {}}, "exec.command is missing"),
        ({}, {"exec": {"command": "x"}}, "exec.apiVersion '' is not supported"),
        (
            {},
            {"exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1alpha1"}},
            "write client.authentication.k8s.io/v1 or client.authentication.k8s.io/v1beta1",
        ),
        (
            {},
            {"exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1"}},
            "exec.interactiveMode must be Never, IfAvailable or Always",
        ),
        (
            {},
            {"exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1beta1", "env": [{"value": "v"}]}},
            "exec.env has an entry without a name",
        ),
    ],
)
def test_a_wrong_field_is_told_in_one_sentence(
    tmp_path: Path, cluster: dict[str, Any], user: dict[str, Any], says: str
) -> None:
    path = kubeconfig(tmp_path / "c", cluster=cluster, user=user)
    with pytest.raises(AccessError, match=says) as wrong:
        load_access(str(path))
    check_sentence(str(wrong.value), path)


def test_a_bundle_may_have_comments_in_any_language(tmp_path: Path, authority: CertificateAuthority) -> None:
    bundle = "# Unsere Zertifizierungsstelle für alles\n".encode() + authority.certificate.read_bytes()
    (tmp_path / "bundle").write_bytes(bundle)
    access = load_access(str(kubeconfig(tmp_path / "c", cluster={"certificate-authority": "bundle"})))
    assert access.tls is not None
    assert len(access.tls.get_ca_certs()) == 1


def test_a_key_of_another_certificate_is_told(tmp_path: Path, authority: CertificateAuthority) -> None:
    jane, john = authority.issue("jane"), authority.issue("john")
    user = {"client-certificate": str(jane.certificate), "client-key": str(john.key)}
    path = kubeconfig(tmp_path / "c", user=user)
    with pytest.raises(AccessError, match="user 'c': the key does not belong to the certificate"):
        load_access(str(path))


@pytest.mark.parametrize("user", ["password: !s3cret", "token: *s3cret", 'token: "s3cret', "token: {s3cret: ]"])
def test_a_kubeconfig_that_is_not_yaml_is_not_quoted(tmp_path: Path, user: str) -> None:
    (tmp_path / "config").write_text(f"users:\n- name: u\n  user:\n    {user}\n")
    with pytest.raises(AccessError, match="the kubeconfig is not YAML: line ") as failed:
        load_access(str(tmp_path / "config"))
    assert "s3cret" not in str(failed.value)
