"""Turns what the operating system, OpenSSL and aiohttp raise into one sentence: why there was no answer.

Its reader has a scheduler that does not start, so the sentence names the server and, where it is clear, what to
look at. Nothing of the request is quoted.
"""

import socket
import ssl

import aiohttp

from podium.client.errors import TimedOut, Unreachable
from podium.client.pool import NotSentError
from podium.client.wire import AnswerTooLargeError, MalformedResponseError
from podium.kube.printable import printable, shortened

_QUOTED = 200
"""Characters of what a server's fault is called: the name quotes what it sent."""

_BEFORE_SENDING = (
    NotSentError,
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.ClientHttpProxyError,
    aiohttp.ClientProxyConnectionError,
)


def unreachable(error: BaseException, host: str) -> Unreachable:
    """The error to raise for one of those that end an exchange."""
    sent = not isinstance(error, _BEFORE_SENDING)
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        why = error.os_error.strerror or error.os_error
        return Unreachable(f"the proxy on the way to {host} cannot be reached: {why}", sent=False)
    cause = _cause(error)
    if isinstance(cause, TimeoutError):
        waited = "did not answer in time" if sent else "could not be connected to in time"
        return TimedOut(f"{host} {waited}", sent=sent)
    forbidding = isinstance(cause, aiohttp.ClientHttpProxyError) and cause.status < 500
    lasting = isinstance(cause, AnswerTooLargeError) or (not sent and (isinstance(cause, ssl.SSLError) or forbidding))
    return Unreachable(_sentence(cause, host), sent=sent, lasting=lasting)


def _cause(error: BaseException) -> BaseException:
    if isinstance(error, NotSentError) and error.__cause__ is not None:
        return error.__cause__
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return error.certificate_error
    if isinstance(error, aiohttp.ClientConnectorError):
        return error.os_error
    return error


def _sentence(error: BaseException, host: str) -> str:
    match error:
        case ssl.SSLCertVerificationError():
            return f"the certificate of {host} is not accepted: {error.verify_message}; see certificate-authority"
        case ssl.SSLError(reason="WRONG_VERSION_NUMBER" | "RECORD_LAYER_FAILURE" | "PACKET_LENGTH_TOO_LONG"):
            return f"{host} does not speak TLS: is it http:// instead of https://, or another port?"
        case ssl.SSLError():
            return f"no TLS connection to {host}: {error.reason or error}"
        case ConnectionRefusedError():
            return f"{host} refuses connections: is the API server running there?"
        case socket.gaierror():
            return f"the address of {host} is not known: {error.strerror}"
        case aiohttp.ClientHttpProxyError():
            return f"the proxy does not connect to {host}: it answered {error.status} {error.message}"
        case AnswerTooLargeError():
            return f"{host} sent too much: {error}"
        case MalformedResponseError():
            return f"{host} sent something else than an answer: {error}"
        case aiohttp.ClientResponseError() if error.message:
            what = printable(shortened(error.message.partition("\n")[0], _QUOTED))
            return f"{host} sent something else than an answer: {what}"
        case aiohttp.ClientPayloadError() | aiohttp.ServerDisconnectedError() | ConnectionResetError():
            return f"{host} closed the connection before the whole answer came"
        case OSError() if error.strerror:
            return f"{host} cannot be reached: {error.strerror}"
    return f"{host} cannot be reached: {type(error).__name__}"
