"""Turns what is wrong with the input into one sentence.

Every layer has exceptions of its own, whose text is written for the reader. The commands let them pass, and this is the
one place that knows them all. Any other exception is a mistake of ours and keeps its traceback.
"""

ANSWER_IS_NO = 1
BAD_INPUT = 2


class InputError(Exception):
    """What was typed cannot be done; the text says why and what to type instead."""


def sentence_for(error: Exception) -> str | None:
    """What to tell the reader; None when the error is not the input's fault."""
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, OSError):
        return f"{error.filename}: cannot be read: {error.strerror}" if error.filename else str(error)
    if hasattr(error, "format_message"):  # a usage error: typer keeps Click's classes out of its public names
        return _usage(error)
    return str(error) if isinstance(error, _input_errors()) else None


def _input_errors() -> tuple[type[Exception], ...]:
    from podium.client.errors import AccessError, ClientError
    from podium.config import ConfigError
    from podium.controllers.catalog import UnknownControllerError
    from podium.engine.explain import UnknownProfileError
    from podium.extender.agents import AgentError
    from podium.framework import PluginError
    from podium.kube import DecodeError
    from podium.kube.admission import AdmissionError
    from podium.plugins import PluginLoadError
    from podium.run.extender_client.tls import ExtenderSettingsError
    from podium.serving import ServingError
    from podium.serving.certificate import CertificateError
    from podium.serving.endpoints.client_certificates import LookupFailedError
    from podium_lab.simulator.errors import ScenarioError

    return (
        AccessError,
        AdmissionError,
        AgentError,
        CertificateError,
        ClientError,
        ConfigError,
        DecodeError,
        ExtenderSettingsError,
        LookupFailedError,
        PluginError,
        PluginLoadError,
        ScenarioError,
        ServingError,
        UnknownControllerError,
        UnknownProfileError,
    )


def _usage(error: Exception) -> str:
    text: str = error.format_message()  # type: ignore[attr-defined]
    if type(error).__name__ == "NoArgsIsHelpError":
        return text  # the help of a command that only groups others
    message = " ".join(text.split())
    message = message.replace("Value error, ", "").removesuffix(".")
    context = getattr(error, "ctx", None)
    return f"{message} (see {context.command_path} --help)" if context else message
