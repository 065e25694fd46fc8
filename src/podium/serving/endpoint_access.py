"""Authenticates and authorizes requests to the endpoints by asking the API server, as kube-scheduler does.

Authentication: a front proxy's headers, a client certificate, or a bearer token, which a TokenReview turns into a user.
Credentials that prove wrong get 401; without any the user is `system:anonymous`. Authorization: `system:masters` may
do everything, some paths are always allowed, and for all else a SubjectAccessReview on the path decides: 403 if it
says no. Answers hold for ten seconds, refusals too. Tokens that were never
right are reviewed ten times a second at most; more get 429, so that strangers wear out neither the API server nor the
answers to those who are known.

Without an API server nothing can be found out: tokens are wrong (401), and reviews fail (500). With none given at all,
only what is always allowed is.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import unquote

import msgspec
from aiohttp import web

from podium.client import Client, ClientError
from podium.client.problem_reports import ReportLimit
from podium.kube.bounds import UNDECODABLE
from podium.serving.client_certificates import ClientAuthorities, FrontProxy, certificates_in
from podium.serving.tls import anchor_of

ALWAYS_ALLOWED = ("/healthz", "/readyz", "/livez")
A_MOMENT = 1.0
ANSWERS_HOLD = 10.0
PATIENCE = 10.0
"""Seconds within which the API server must answer."""
UNKNOWN_TOKENS_PER_SECOND, UNKNOWN_TOKENS_AT_ONCE = 10.0, 20
"""Reviews of tokens that were never right: more are answered 429, and the API server is not asked."""
MOST_KNOWN_TOKENS = 1024
REPEAT = 10.0
"""Seconds between two log lines about reviews that failed."""
MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"

_TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105  a path
_ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

Extra = tuple[tuple[str, tuple[str, ...]], ...]
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

MOST = 4096


class UserInfo(NamedTuple):
    """Who sent a request, as authentication.k8s.io has it."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Extra = ()


ANONYMOUS = UserInfo("system:anonymous", ("system:unauthenticated",))


class AccessQuestion(NamedTuple):
    """What a SubjectAccessReview is asked."""

    user: UserInfo
    path: str
    verb: str


class ResourceQuestion(NamedTuple):
    """The same about objects of the core group."""

    user: UserInfo
    verb: str
    resource: str
    namespace: str
    """Empty: in all of them."""


class AccessDecision(NamedTuple):
    """What a SubjectAccessReview answered."""

    allowed: bool
    reason: str


class UnauthenticatedError(Exception):
    """Credentials were shown that prove nothing."""


class TooManyTokensError(Exception):
    """More tokens came that were never right than the API server is asked about."""


class DelegatedAccessControl:
    """Access control by the API server; `authentication` and `authorization` are clients to ask it with."""

    def __init__(
        self,
        authentication: Client | None,
        authorization: Client | None,
        authorities: ClientAuthorities,
        *,
        always_allow_paths: Sequence[str] = ALWAYS_ALLOWED,
        tolerate_lookup_failure: bool = True,
        token_answers_hold: float = ANSWERS_HOLD,
        access_answers_hold: float = ANSWERS_HOLD,
        report: Callable[[str], None] = lambda _message: None,
    ) -> None:
        self._authentication = authentication
        self._authorization = authorization
        self.authorities = authorities
        self._always_allowed = [path.removeprefix("/") for path in always_allow_paths]
        self._tolerant = tolerate_lookup_failure
        self._report = report
        self._users: ReviewCache[str, UserInfo | None] = ReviewCache(token_answers_hold)
        self._known_tokens: OrderedDict[str, None] = OrderedDict()
        self._unknown_tokens = RateLimit(UNKNOWN_TOKENS_PER_SECOND, UNKNOWN_TOKENS_AT_ONCE)
        self._report_limit = ReportLimit(REPEAT, lambda: asyncio.get_running_loop().time())
        self._answers: ReviewCache[AccessQuestion | ResourceQuestion, AccessDecision] = ReviewCache(access_answers_hold)
        self._current: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Find out whose certificates to believe; where doing without is tolerated, an answer is waited for only a
        moment, otherwise LookupFailedError is raised without one."""
        if not self._tolerant:
            await self.authorities.look_up()
        self._current = asyncio.create_task(self.authorities.keep_current())
        with suppress(TimeoutError):
            await asyncio.wait_for(self.authorities.looked.wait(), A_MOMENT)

    async def stop(self) -> None:
        if self._current is not None:
            self._current.cancel()
            await asyncio.gather(self._current, return_exceptions=True)

    async def refusal(self, request: web.Request) -> web.Response | None:
        """The answer to a request that must not be served; None when it may."""
        try:
            user = await self._user(request)
        except UnauthenticatedError:
            return status(401, "Unauthorized", "Unauthorized")
        except TooManyTokensError:
            response = status(429, "TooManyRequests", "too many unknown tokens: try again in a second")
            response.headers["Retry-After"] = "1"
            return response
        path, verb = request.path, request.method.lower()
        if MASTERS in user.groups or self._is_always_allowed(path):
            return None
        if self._authorization is None:
            return _forbidden(user, path, verb, "")
        try:
            question = AccessQuestion(user, path, verb)
            answer = await self._answers.get(question, lambda: self._review_access(question))
        except ClientError as error:
            self._report_at_times(f"may {user.name} {verb} {path}? The API server cannot be asked: {error}")
            return web.Response(status=500, text=f'Internal Server Error: "{path}": the API server cannot be asked\n')
        return None if answer.allowed else _forbidden(user, path, verb, answer.reason)

    async def user_of(self, request: web.BaseRequest, token: str = "") -> UserInfo:
        """Who sends a request, by its certificate, its bearer token or this one; ANONYMOUS where nothing says so.

        Raises UnauthenticatedError or TooManyTokensError.
        """
        return await self._user(request, token)

    async def may(self, question: AccessQuestion | ResourceQuestion) -> bool:
        """Whether the API server allows it; raises ClientError where that cannot be asked."""
        if self._authorization is None:
            return False
        return (await self._answers.get(question, lambda: self._review_access(question))).allowed

    def _is_always_allowed(self, path: str) -> bool:
        path = path.removeprefix("/")
        return any(
            path.startswith(allowed[:-1]) if allowed.endswith("*") else path == allowed
            for allowed in self._always_allowed
        )

    # Authentication

    async def _user(self, request: web.BaseRequest, token: str = "") -> UserInfo:
        user, doubtful = self._certified(request)
        if user is None:
            token = _bearer_token(request.headers.get("Authorization", "")) or token
            if token and self._authentication is not None:
                user = await self._token_user(token)
                doubtful = doubtful or user is None
        if user is not None:
            known = AUTHENTICATED in user.groups or user.name == ANONYMOUS.name
            return user if known else user._replace(groups=(*user.groups, AUTHENTICATED))
        if doubtful:
            raise UnauthenticatedError
        return ANONYMOUS

    def _certified(self, request: web.BaseRequest) -> tuple[UserInfo | None, bool]:
        """The user that a client certificate proves, and whether it was one that should have and did not."""
        transport = request.transport
        connection = None if transport is None else transport.get_extra_info("ssl_object")
        anchor = None if connection is None else anchor_of(connection)
        if anchor is None:
            return None, False
        assert transport is not None
        names = _subject(transport.get_extra_info("peercert") or {})
        common_name = next(iter(names.get("commonName", ())), "")
        proxy = self.authorities.front_proxy
        if proxy is not None and anchor in certificates_in(proxy.authority):
            user = _proxied(request.headers, proxy, common_name)
            if user is not None:
                return user, False
        now = asyncio.get_running_loop().time()
        if anchor not in certificates_in(self.authorities.users(now)):
            return None, True
        return (UserInfo(common_name, tuple(names.get("organizationName", ()))) if common_name else None), False

    async def _token_user(self, token: str) -> UserInfo | None:
        digest = hashlib.sha256(token.encode(errors="replace")).hexdigest()  # of no use to a thief
        if digest not in self._known_tokens and digest not in self._users and not self._unknown_tokens.allows():
            raise TooManyTokensError
        try:
            user = await self._users.get(digest, lambda: self._review_token(token))
        except ClientError as error:
            self._report_at_times(f"a token cannot be reviewed: {error}")
            return None
        if user is not None:
            self._remember(digest)
        return user

    def _remember(self, digest: str) -> None:
        """Let a token that was right be reviewed again at any time, however many wrong ones come."""
        self._known_tokens[digest] = None
        self._known_tokens.move_to_end(digest)
        if len(self._known_tokens) > MOST_KNOWN_TOKENS:
            self._known_tokens.popitem(last=False)

    def _report_at_times(self, sentence: str) -> None:
        if self._report_limit.due("reviews"):
            self._report(sentence)

    async def _review_token(self, token: str) -> UserInfo | None:
        assert self._authentication is not None
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        status_object = _status_of(await self._authentication.post(_TOKEN_REVIEWS, body, timeout=PATIENCE))
        if not status_object.get("authenticated"):
            return None
        user: Mapping[str, Any] = status_object.get("user") or {}
        extra = tuple((key, tuple(values)) for key, values in sorted((user.get("extra") or {}).items()))
        return UserInfo(user.get("username", ""), tuple(user.get("groups") or ()), user.get("uid", ""), extra)

    # Authorization

    async def _review_access(self, question: AccessQuestion | ResourceQuestion) -> AccessDecision:
        assert self._authorization is not None
        user = question.user
        spec: dict[str, Any] = {
            "user": user.name,
            "groups": user.groups,
            "uid": user.uid,
            "extra": dict(user.extra),
        }
        if isinstance(question, AccessQuestion):
            spec["nonResourceAttributes"] = {"path": question.path, "verb": question.verb}
        else:
            attributes = {"verb": question.verb, "resource": question.resource, "namespace": question.namespace}
            spec["resourceAttributes"] = {**attributes, "version": "v1"}
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        status_object = _status_of(await self._authorization.post(_ACCESS_REVIEWS, body, timeout=PATIENCE))
        return AccessDecision(bool(status_object.get("allowed")), str(status_object.get("reason") or ""))


def status(code: int, reason: str, message: str, details: dict[str, str] | None = None) -> web.Response:
    """A refusal as API servers write it."""
    body: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    body |= {"message": message, "reason": reason}
    if details is not None:
        body["details"] = details
    content = msgspec.json.encode({**body, "code": code}) + b"\n"
    return web.Response(status=code, body=content, content_type="application/json")


def _forbidden(user: UserInfo, path: str, verb: str, reason: str) -> web.Response:
    message = f'forbidden: User "{user.name}" cannot {verb} path "{path}"'
    return status(403, "Forbidden", f"{message}: {reason}" if reason else message, {})


def _bearer_token(header: str) -> str:
    scheme, _, rest = header.strip().partition(" ")
    return rest.partition(" ")[0] if scheme.lower() == "bearer" else ""


def _subject(certificate: Mapping[str, Any]) -> dict[str, list[str]]:
    """The subject's names by kind."""
    names: dict[str, list[str]] = {}
    for part in certificate.get("subject", ()):
        for kind, name in part:
            names.setdefault(kind, []).append(name)
    return names


def _proxied(headers: Any, proxy: FrontProxy, common_name: str) -> UserInfo | None:
    """The user that a front proxy asks for; None when it may not, or does not say."""
    if proxy.allowed_names and common_name not in proxy.allowed_names:
        return None
    name = next((headers[header] for header in proxy.username_headers if headers.get(header)), "")
    if not name:
        return None
    groups = tuple(group for header in proxy.group_headers for group in headers.getall(header, ()))
    uid = next((headers[header] for header in proxy.uid_headers if headers.get(header)), "")
    extra: dict[str, list[str]] = {}
    for prefix in proxy.extra_header_prefixes:
        for header, value in headers.items():
            if header.lower().startswith(prefix.lower()):
                extra.setdefault(unquote(header[len(prefix) :]).lower(), []).append(value)
    return UserInfo(name, groups, uid, tuple((key, tuple(values)) for key, values in sorted(extra.items())))


def _status_of(content: bytes) -> Mapping[str, Any]:
    try:
        status_object: Mapping[str, Any] = msgspec.json.decode(content).get("status") or {}
        return status_object
    except (*UNDECODABLE, AttributeError):
        raise ClientError("the API server's answer makes no sense") from None


class RateLimit:
    """One limit, on the event loop's time.

    Limits a rate without waiting: what comes too often is refused.

    `burst` may come at once; after that, `rate` a second.
    """

    def __init__(self, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = burst
        self._free = float(burst)
        self._as_of: float | None = None

    def allows(self) -> bool:
        """Whether one more may come now; it counts as come then."""
        now = asyncio.get_running_loop().time()
        if self._as_of is not None:
            self._free = min(self._burst, self._free + (now - self._as_of) * self._rate)
        self._as_of = now
        if self._free < 1:
            return False
        self._free -= 1
        return True


class ReviewCache(Generic[K, V]):
    """Answers, each cached for `seconds`; what could not be answered is asked again."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._answers: OrderedDict[K, tuple[float, V]] = OrderedDict()
        self._asking: dict[K, asyncio.Task[V]] = {}

    def __contains__(self, key: K) -> bool:
        """Whether an answer is cached, or being asked for."""
        known = self._answers.get(key)
        return key in self._asking or (known is not None and asyncio.get_running_loop().time() < known[0])

    async def get(self, key: K, ask: Callable[[], Coroutine[Any, Any, V]]) -> V:
        """The answer under this key: cached, being asked for already, or asked for now."""
        known = self._answers.get(key)
        if known is not None and asyncio.get_running_loop().time() < known[0]:
            return known[1]
        task = self._asking.get(key)
        if task is None:
            task = self._asking[key] = asyncio.create_task(self._answer(key, ask))
            task.add_done_callback(_look_at)
        return await asyncio.shield(task)  # a request that is cancelled does not take the answer from the others

    async def _answer(self, key: K, ask: Callable[[], Coroutine[Any, Any, V]]) -> V:
        try:
            answer = await ask()
        finally:
            del self._asking[key]
        self._answers.pop(key, None)
        self._answers[key] = (asyncio.get_running_loop().time() + self._seconds, answer)
        while len(self._answers) > MOST:
            self._answers.popitem(last=False)
        return answer


def _look_at(task: asyncio.Task[Any]) -> None:
    """Keep asyncio from complaining about a failure that no request waits for any more."""
    if not task.cancelled():
        task.exception()
