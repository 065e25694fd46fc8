"""Who is let in: the same as by kube-scheduler, asked the same things on the same API server; and nobody in doubt."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from podium.client import Access, Client
from podium.serving.certificate import SelfSigned
from podium.serving.client_certificates import CONFIG_MAP, ClientAuthorities, LookupFailedError
from podium.serving.endpoint_access import UNKNOWN_TOKENS_AT_ONCE, UNKNOWN_TOKENS_PER_SECOND, DelegatedAccessControl
from podium.serving.tls import ServingTls
from tests.podium.serving.servings import LOOPBACK, Reply, ask, served
from tools.testbed import ControlPlane
from tools.testbed.certificates import CertificateAuthority, KeyPair


@asynccontextmanager
async def guarded(
    authentication: Client | None, authorization: Client | None, *, client_file: str = "", **options: Any
) -> AsyncIterator[str]:
    """The address of endpoints behind delegated access control."""
    clock = asyncio.get_running_loop().time
    authorities = ClientAuthorities(authentication, client_file, options.get("report", lambda _message: None))
    access = DelegatedAccessControl(authentication, authorization, authorities, **options)
    tls = ServingTls(SelfSigned(LOOPBACK), lambda: authorities.all(clock()), clock, print)
    async with served(access=access, tls=tls.context, readyz={"shutdown": lambda: None}) as address:
        yield address


# Against kube-scheduler


PATHS = ("/healthz", "/readyz/shutdown", "/metrics", "/metrics/resources", "/configz", "/nope")


@pytest.fixture(scope="module")
def users(control_plane: ControlPlane) -> Iterator[dict[str, dict[str, Any]]]:
    """Ways to introduce oneself, by name."""
    client = control_plane.client
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "scraper"},
        "rules": [{"nonResourceURLs": ["/metrics", "/metrics/slis"], "verbs": ["get"]}],
    }
    subjects = [
        {"kind": "User", "name": "scraper", "apiGroup": "rbac.authorization.k8s.io"},
        {"kind": "ServiceAccount", "name": "scraper", "namespace": "default"},
    ]
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "scraper"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "scraper"},
        "subjects": subjects,
    }
    tokens = {}
    for name in ("scraper", "nobody"):
        metadata = {"name": name, "namespace": "default"}
        client.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        path = f"/api/v1/namespaces/default/serviceaccounts/{name}/token"
        tokens[name] = json.loads(client.request("POST", path, asked))["status"]["token"]
    client.create_all([role, binding])
    issue = control_plane.authority.issue
    yield {
        "nobody at all": {},
        "a wrong token": {"token": "wrong"},
        "the administrator's token": {"token": control_plane.token},
        "a token of one who may scrape": {"token": tokens["scraper"]},
        "a token of one who may nothing": {"token": tokens["nobody"]},
        "a certificate of one who may scrape": {"pair": issue("scraper")},
        "a certificate of one who may nothing": {"pair": issue("other")},
        "a certificate of a master": {"pair": issue("boss", organizations=["system:masters"])},
        "a certificate and a wrong token": {"pair": issue("scraper"), "token": "wrong"},
        "another scheme": {"headers": {"Authorization": "Basic YTpi"}},
        "an empty token": {"headers": {"Authorization": "Bearer "}},
    }
    for kind in ("ClusterRole", "ClusterRoleBinding"):
        client.delete(kind, "scraper")
    for name in tokens:
        client.delete("ServiceAccount", name)


def test_the_same_requests_get_the_same_answers_as_from_kube_scheduler(
    control_plane: ControlPlane, users: dict[str, dict[str, Any]]
) -> None:
    scheduler = control_plane.start_scheduler()
    podium = control_plane.start_podium()
    cases = {f"{path} by {user}": (path, users[user]) for user in users for path in PATHS}

    async def answers_of(address: str) -> dict[str, Reply]:
        replies = await asyncio.gather(*(ask(f"{address}{path}", **user) for path, user in cases.values()))
        return dict(zip(cases, replies, strict=True))

    async def main() -> list[dict[str, Reply]]:
        addresses = [scheduler.url, podium.url]
        for address in addresses:
            await until_certificates_are_believed(address, users["a certificate of a master"]["pair"])
        return [await answers_of(address) for address in addresses]

    try:
        theirs, ours = asyncio.run(main())
    finally:
        scheduler.stop()
        podium.stop()
    assert [(case, reply.status) for case, reply in ours.items()] == [
        (case, reply.status) for case, reply in theirs.items()
    ]
    refused = {case for case, reply in theirs.items() if reply.status in (401, 403)}
    assert len(refused) > 20
    assert {case: json.loads(ours[case].text) for case in refused} == {
        case: json.loads(theirs[case].text) for case in refused
    }


async def until_certificates_are_believed(address: str, pair: KeyPair) -> None:
    """A scheduler may look up whose certificates to believe after it is ready."""
    end = time.monotonic() + 30
    while (await ask(f"{address}/metrics", pair=pair)).status != 200:
        assert time.monotonic() < end
        await asyncio.sleep(0.1)


# Against an API server that keeps count, or misbehaves


class ApiServer:
    """As much of an API server as access control asks; every user may what `allowed` says."""

    def __init__(self) -> None:
        self.published: dict[str, str] = {}
        self.tokens = {"good": {"username": "jane", "groups": ["team"], "uid": "7", "extra": {"scopes": ["a", "b"]}}}
        self.allowed: Callable[[dict[str, Any]], bool] = lambda _spec: True
        self.reviews: list[tuple[str, dict[str, Any]]] = []
        self.fails = False
        self.nonsense = False

    def application(self) -> web.Application:
        app = web.Application()
        app.router.add_get(CONFIG_MAP, self._config_map)
        app.router.add_post("/apis/authentication.k8s.io/v1/tokenreviews", self._review_token)
        app.router.add_post("/apis/authorization.k8s.io/v1/subjectaccessreviews", self._review_access)
        return app

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        runner = web.AppRunner(self.application())
        await runner.setup()
        site = web.TCPSite(runner, LOOPBACK, 0)
        await site.start()
        port = runner.addresses[0][1]
        try:
            async with Client(Access(f"http://{LOOPBACK}:{port}")) as client:
                yield client
        finally:
            await runner.cleanup()

    async def _config_map(self, _request: web.Request) -> web.Response:
        return web.Response(status=403) if self.fails else web.json_response({"data": self.published})

    async def _review_token(self, request: web.Request) -> web.Response:
        user = self.tokens.get(await self._spec(request, "token", "token"))
        return self._reply({"authenticated": user is not None, "user": user})

    async def _review_access(self, request: web.Request) -> web.Response:
        spec = await self._spec(request, "access")
        return self._reply({"allowed": self.allowed(spec), "reason": "" if self.allowed(spec) else "not today"})

    async def _spec(self, request: web.Request, kind: str, field: str = "") -> Any:
        spec = (await request.json())["spec"]
        self.reviews.append((kind, spec))
        await asyncio.sleep(0.01)
        return spec[field] if field else spec

    def _reply(self, status: dict[str, Any]) -> web.Response:
        if self.fails:
            return web.Response(status=503)
        return web.Response(text="[]") if self.nonsense else web.json_response({"status": status})


def run_with(server: ApiServer, steps: Callable[[str], Any], **options: Any) -> Any:
    async def main() -> Any:
        async with server.client() as client, guarded(client, client, **options) as address:
            return await steps(address)

    return asyncio.run(main())


def test_a_users_whole_identity_is_put_to_the_question() -> None:
    server = ApiServer()
    reply = run_with(server, lambda address: ask(f"{address}/metrics", token="good"))
    assert reply.status == 200
    assert server.reviews[1] == (
        "access",
        {
            "user": "jane",
            "groups": ["team", "system:authenticated"],
            "uid": "7",
            "extra": {"scopes": ["a", "b"]},
            "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
        },
    )


def test_answers_are_remembered_and_asked_for_once_at_a_time() -> None:
    server = ApiServer()

    async def steps(address: str) -> None:
        await asyncio.gather(*(ask(f"{address}/metrics", token="good") for _ in range(5)))
        await ask(f"{address}/metrics", token="good")
        await ask(f"{address}/configz", token="good")
        await asyncio.gather(*(ask(f"{address}/metrics", token="bad") for _ in range(5)))

    run_with(server, steps)
    assert [kind for kind, _spec in server.reviews] == ["token", "access", "access", "token"]


def test_answers_are_forgotten_when_their_time_is_over() -> None:
    server = ApiServer()

    async def steps(address: str) -> list[int]:
        first = await ask(f"{address}/metrics", token="good")
        server.allowed = lambda _spec: False
        return [first.status, (await ask(f"{address}/metrics", token="good")).status]

    assert run_with(server, steps, access_answers_hold=0.0) == [200, 403]
    server.allowed = lambda _spec: True
    assert run_with(server, steps, access_answers_hold=60.0) == [200, 200]


def test_a_flood_of_unknown_tokens_is_not_passed_on_and_shuts_out_nobody_who_is_known() -> None:
    server = ApiServer()
    reports: list[str] = []

    async def steps(address: str) -> list[int]:
        first = await ask(f"{address}/metrics", token="good")
        flood = await asyncio.gather(*(ask(f"{address}/metrics", token=f"junk-{number}") for number in range(60)))
        again = await ask(f"{address}/metrics", token="junk-0")
        still = await ask(f"{address}/metrics", token="good")
        refused = next(reply for reply in flood if reply.status == 429)
        assert refused.headers["Retry-After"] == "1"
        assert {reply.status for reply in flood} == {401, 429}
        return [first.status, again.status, still.status]

    statuses = run_with(server, steps, token_answers_hold=0.0, access_answers_hold=60.0, report=reports.append)
    assert statuses[0] == statuses[2] == 200
    assert statuses[1] in (401, 429)
    junk = [spec["token"] for kind, spec in server.reviews if kind == "token" and spec["token"] != "good"]
    assert len(junk) <= UNKNOWN_TOKENS_AT_ONCE + 5 * UNKNOWN_TOKENS_PER_SECOND  # the flood took a moment
    assert len(junk) < 60


def test_a_refused_token_is_cached_as_long_as_a_good_one() -> None:
    server = ApiServer()

    async def steps(address: str) -> set[int]:
        return {(await ask(f"{address}/metrics", token="junk")).status for _ in range(5)}

    assert run_with(server, steps) == {401}
    assert [kind for kind, _spec in server.reviews] == ["token"]


def test_reviews_that_fail_are_reported_once_in_a_while() -> None:
    server = ApiServer()
    reports: list[str] = []

    async def steps(address: str) -> None:
        server.fails = True
        for number in range(8):
            await ask(f"{address}/metrics", token=f"t{number}")

    run_with(server, steps, report=reports.append)
    assert len([line for line in reports if "cannot be reviewed" in line]) == 1


def test_the_reason_of_a_refusal_is_passed_on() -> None:
    server = ApiServer()
    server.allowed = lambda _spec: False
    reply = run_with(server, lambda address: ask(f"{address}/metrics"))
    assert reply.status == 403
    assert json.loads(reply.text)["message"] == (
        'forbidden: User "system:anonymous" cannot get path "/metrics": not today'
    )


def test_an_api_server_that_cannot_answer_lets_nobody_in() -> None:
    server = ApiServer()

    async def steps(address: str) -> list[int]:
        replies = [await ask(f"{address}/metrics", token="good")]
        replies += [await ask(f"{address}{path}") for path in ("/metrics", "/healthz")]
        return [reply.status for reply in replies]

    server.fails = True
    assert run_with(server, steps) == [401, 500, 200]
    server.fails, server.nonsense = False, True
    assert run_with(server, steps) == [401, 500, 200]


def test_without_an_api_server_only_what_is_always_allowed_is_served() -> None:
    async def main() -> list[int]:
        async with guarded(None, None, always_allow_paths=["/healthz", "/metrics*"]) as address:
            paths = ("/healthz", "/metrics", "/metrics/slis", "/configz", "/healthz/ping")
            return [(await ask(f"{address}{path}", token="any")).status for path in paths]

    assert asyncio.run(main()) == [200, 200, 200, 403, 403]


# Certificates


def test_the_authority_of_clients_may_come_from_a_file(tmp_path: Path) -> None:
    authority = CertificateAuthority(tmp_path)
    pair = authority.issue("jane", organizations=["a", "b"])
    server = ApiServer()
    path = str(authority.certificate)
    reply = run_with(server, lambda address: ask(f"{address}/metrics", pair=pair), client_file=path)
    assert reply.status == 200
    ((_kind, spec),) = server.reviews
    assert (spec["user"], spec["groups"]) == ("jane", ["a", "b", "system:authenticated"])


def test_certificates_of_strangers_do_not_get_through_the_handshake(tmp_path: Path) -> None:
    (tmp_path / "ours").mkdir()
    (tmp_path / "strange").mkdir()
    authority = CertificateAuthority(tmp_path / "ours")
    stranger = CertificateAuthority(tmp_path / "strange").issue("jane")

    async def steps(address: str) -> None:
        with pytest.raises(aiohttp.ClientError):
            await ask(f"{address}/metrics", pair=stranger)

    run_with(ApiServer(), steps, client_file=str(authority.certificate))


def test_authorities_published_later_are_believed_from_then_on(tmp_path: Path) -> None:
    authority = CertificateAuthority(tmp_path)
    pair = authority.issue("jane", organizations=["system:masters"])
    server = ApiServer()
    server.allowed = lambda _spec: False

    async def main() -> list[int]:
        async with server.client() as client:
            clock = asyncio.get_running_loop().time
            authorities = ClientAuthorities(client)
            access = DelegatedAccessControl(client, client, authorities)
            tls = ServingTls(SelfSigned(LOOPBACK), lambda: authorities.all(clock()), clock, print)
            async with served(access=access, tls=tls.context) as address:
                before = await ask(f"{address}/metrics", pair=pair)
                server.published = {"client-ca-file": authority.certificate.read_text()}
                await authorities.look_up()
                after = await ask(f"{address}/metrics", pair=pair)
        return [before.status, after.status]

    assert asyncio.run(main()) == [403, 200]


FOR_JANE = {"X-Remote-User": "jane", "X-Remote-Group": "team", "X-Remote-Extra-Sco%2Fpe": "x"}


@pytest.mark.parametrize(
    ("common_name", "headers", "status", "user"),
    [
        ("front-proxy", FOR_JANE, 200, "jane"),
        ("front-proxy", {}, 401, None),
        ("somebody-else", {"X-Remote-User": "jane"}, 401, None),
    ],
)
def test_a_front_proxy_speaks_for_users_if_it_is_the_one_that_may(
    tmp_path: Path, common_name: str, headers: dict[str, str], status: int, user: str | None
) -> None:
    authority = CertificateAuthority(tmp_path)
    server = ApiServer()
    server.published = {
        "requestheader-client-ca-file": authority.certificate.read_text(),
        "requestheader-allowed-names": '["front-proxy"]',
        "requestheader-username-headers": '["X-Remote-User"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
        "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
    }
    pair = authority.issue(common_name)
    reply = run_with(server, lambda address: ask(f"{address}/metrics", pair=pair, headers=headers))
    assert reply.status == status
    assert [spec["user"] for _kind, spec in server.reviews] == ([] if user is None else [user])
    if user is not None:
        spec = server.reviews[0][1]
        assert (spec["groups"], spec["extra"]) == (["team", "system:authenticated"], {"sco/pe": ["x"]})


def test_a_user_certificate_does_not_speak_for_others(tmp_path: Path) -> None:
    for folder in ("users", "proxies"):
        (tmp_path / folder).mkdir()
    users, proxies = CertificateAuthority(tmp_path / "users"), CertificateAuthority(tmp_path / "proxies")
    server = ApiServer()
    server.published = {
        "client-ca-file": users.certificate.read_text(),
        "requestheader-client-ca-file": proxies.certificate.read_text(),
        "requestheader-username-headers": '["X-Remote-User"]',
    }
    headers = {"X-Remote-User": "boss", "X-Remote-Group": "system:masters"}
    run_with(server, lambda address: ask(f"{address}/metrics", pair=users.issue("jane"), headers=headers))
    assert [spec["user"] for _kind, spec in server.reviews] == ["jane"]


# Looking up whose certificates to believe


@pytest.mark.parametrize("tolerant", [True, False])
def test_a_failed_lookup_is_tolerated_or_not(tolerant: bool) -> None:
    reports: list[str] = []
    server = ApiServer()
    server.fails = True

    def run() -> Reply:
        options = {"tolerate_lookup_failure": tolerant, "report": reports.append}
        reply: Reply = run_with(server, lambda address: ask(f"{address}/healthz"), **options)
        return reply

    if tolerant:
        assert run().status == 200
        assert reports[0].startswith("client certificates cannot be believed for want of their authorities:")
    else:
        with pytest.raises(LookupFailedError):
            run()


def test_a_config_map_that_makes_no_sense_changes_nothing(tmp_path: Path) -> None:
    authority = CertificateAuthority(tmp_path)
    server = ApiServer()
    server.published = {"client-ca-file": authority.certificate.read_text()}

    async def main() -> None:
        async with server.client() as client:
            authorities = ClientAuthorities(client)
            await authorities.look_up()
            server.published = {"requestheader-client-ca-file": "x", "requestheader-allowed-names": "{"}
            with pytest.raises(LookupFailedError, match="extension-apiserver-authentication makes no sense"):
                await authorities.look_up()
            assert authorities.users(0.0) == authority.certificate.read_bytes()

    asyncio.run(main())
