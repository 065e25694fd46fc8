"""Decides who looks at a dashboard that is not on loopback, and what they see of it.

The API server says who a token belongs to (TokenReview) and what they may (SubjectAccessReview). Those who may get the
path /dashboard, or list pods in all namespaces, see everything. All others see the pods of the namespaces whose pods
they may list. Nodes, and sums over the pods of others, are shown to everyone who is known.

A browser keeps its token in a cookie that scripts cannot read and other sites cannot have sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from typing import Final, NamedTuple

from aiohttp import web

from podium.client import ClientError
from podium.run.dashboard import PATH
from podium.serving.endpoint_access import (
    ANONYMOUS,
    MASTERS,
    AccessQuestion,
    DelegatedAccessControl,
    ResourceQuestion,
    TooManyTokensError,
    UnauthenticatedError,
    UserInfo,
)


class Viewer(NamedTuple):
    """Who looks at a dashboard."""

    name: str = ""
    namespaces: frozenset[str] | None = None
    """Those that it sees; None: all."""

    @property
    def everything(self) -> bool:
        return self.namespaces is None

    def sees(self, namespace: str) -> bool:
        return self.namespaces is None or namespace in self.namespaces

    def sees_key(self, key: str) -> bool:
        """Whether it sees a pod, or another object of a namespace, by "namespace/name"."""
        return self.namespaces is None or key.partition("/")[0] in self.namespaces


EVERYBODY = Viewer()
"""The viewer of a dashboard on loopback, which has no sign-in."""


COOKIE: Final = "podium-dashboard"
MOST_NAMESPACES: Final = 2_000
"""Namespaces that are asked about for one viewer."""


class RefusedError(Exception):
    """The request is not answered: a status and a sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class ViewerAccess:
    """Finds out who looks. Without access control, whoever reaches the dashboard sees everything."""

    def __init__(self, control: DelegatedAccessControl | None) -> None:
        self._control = control

    @property
    def asks(self) -> bool:
        """Whether viewers have to say who they are."""
        return self._control is not None

    async def start(self) -> None:
        if self._control is not None:
            await self._control.start()

    async def stop(self) -> None:
        if self._control is not None:
            await self._control.stop()

    async def viewer(self, request: web.BaseRequest, namespaces: Iterable[str]) -> Viewer:
        """Who sends a request, and which of these namespaces they see; raises RefusedError."""
        control = self._control
        if control is None:
            return EVERYBODY
        user = await self._user(control, request)
        try:
            if await _sees_everything(control, user):
                return Viewer(user.name)
            wanted = sorted(set(namespaces))[:MOST_NAMESPACES]
            answers = await asyncio.gather(
                *(control.may(ResourceQuestion(user, "list", "pods", namespace)) for namespace in wanted)
            )
        except ClientError as error:
            raise RefusedError(503, f"the API server cannot be asked what you may see: {error}") from None
        seen = frozenset(name for name, allowed in zip(wanted, answers, strict=True) if allowed)
        if not seen and not await _may_look(control, user):
            raise RefusedError(403, f"{user.name} may list pods in no namespace, and may not get {PATH}")
        return Viewer(user.name, seen)

    async def _user(self, control: DelegatedAccessControl, request: web.BaseRequest) -> UserInfo:
        try:
            user = await control.user_of(request, cookie_token(request))
        except UnauthenticatedError:
            raise RefusedError(401, "this token is not valid: sign in with another one") from None
        except TooManyTokensError:
            raise RefusedError(429, "too many unknown tokens: try again in a second") from None
        if user.name == ANONYMOUS.name:
            raise RefusedError(401, "sign in with a token of the cluster")
        return user


async def _sees_everything(control: DelegatedAccessControl, user: UserInfo) -> bool:
    if MASTERS in user.groups or await control.may(ResourceQuestion(user, "list", "pods", "")):
        return True
    return await control.may(AccessQuestion(user, PATH, "get"))


async def _may_look(control: DelegatedAccessControl, user: UserInfo) -> bool:
    try:
        return await control.may(ResourceQuestion(user, "list", "nodes", ""))
    except ClientError:
        return False


def cookie_token(request: web.BaseRequest) -> str:
    """The token in a request's cookie."""
    try:
        found = SimpleCookie(request.headers.get("Cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value


def cookie_with(token: str, *, secure: bool) -> str:
    """The header that has a browser keep a token; an empty one makes it forget."""
    end = "" if token else "; Max-Age=0"
    return f"{COOKIE}={token}; Path={PATH}; HttpOnly; SameSite=Strict{'; Secure' if secure else ''}{end}"
