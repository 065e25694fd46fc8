"""Reads kube-scheduler's flags on the command line of `podium run`: a container's arguments can stay as they are.

A flag has a treatment: it is an option here (`Same`), becomes one (`Becomes`), is applied with no option of its own
(`Applied`), or is ignored (`Ignored`), which a warning says with what Podium has instead. Those that kube-scheduler
dropped years ago are read, too, unless they said what to decide: then one sentence says where that is written today
(`Gone`). As in kube-scheduler, `_` in a name is `-`, a value follows `=` or a space, and a boolean may stand alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from podium.cli.errors import InputError

_TRUE: Final = ("1", "t", "T", "TRUE", "true", "True")
_FALSE: Final = ("0", "f", "F", "FALSE", "false", "False")
_LONG: Final = re.compile(r"--(?P<name>[A-Za-z][\w-]*)(?:=(?P<value>.*))?", re.DOTALL)
_VERBOSITY: Final = re.compile(r"-v=?(?P<value>.*)", re.DOTALL)
_DEBUG, _TRACE = 4, 10


class Same(NamedTuple):
    """An option of ours; `bare` where it takes no value here."""

    here: str = "the same"
    is_bool: bool = False
    bare: bool = False


class Becomes(NamedTuple):
    """Written as another option."""

    here: str
    option: str
    value: Callable[[str], str] = str
    is_bool: bool = False


class Applied(NamedTuple):
    """Does here what it does there."""

    here: str = "the same"
    is_bool: bool = False


class Ignored(NamedTuple):
    """Changes nothing; with a value in `fits`, Podium does what is asked for anyway, and nothing is said."""

    here: str
    fits: tuple[str, ...] = ()
    is_bool: bool = False


class Gone(NamedTuple):
    """Has had no effect in kube-scheduler for years, and cannot be ignored."""

    here: str
    is_bool: bool = False


Flag = Same | Becomes | Applied | Ignored | Gone


def level_of(verbosity: str) -> str:
    """
    >>> [level_of(each) for each in ("0", "2", "4", "6", "10")]
    ['info', 'info', 'debug', 'debug', 'trace']
    """
    if not re.fullmatch("-?[0-9]{1,9}", verbosity):
        raise InputError(f'-v "{verbosity}" is no whole number: write it like -v=2, or --log-level info')
    number = int(verbosity)
    return "trace" if number >= _TRACE else "debug" if number >= _DEBUG else "info"


_AT_ONCE: Final = "every line is written at once"
_STDERR: Final = "the log goes to standard error"
_LABELS: Final = "labels have every value"
_HTTP: Final = "Podium serves HTTP/1.1 alone"
_OPENSSL: Final = "OpenSSL's own choice is offered; `--tls-min-version` holds"
_FRONT_PROXY: Final = "the cluster's own (ConfigMap extension-apiserver-authentication) holds"
_TEN_SECONDS: Final = "answers hold for 10 s"
_NO_PPROF: Final = "there is no /debug/pprof; SIGUSR2 logs what is in memory"
_NO_HTTP: Final = "nothing is served without TLS: `--secure-port` and `--bind-address` say where"

FLAGS: Final[Mapping[str, Flag]] = {
    "config": Same(),
    "master": Same(),
    "write-config-to": Applied(),
    "version": Applied("prints Podium's version", is_bool=True),
    "bind-address": Same(),
    "secure-port": Same(),
    "cert-dir": Same(),
    "tls-cert-file": Same(),
    "tls-private-key-file": Same(),
    "tls-min-version": Applied("the same; never below VersionTLS12"),
    "tls-cipher-suites": Ignored(_OPENSSL),
    "tls-curve-preferences": Ignored(_OPENSSL),
    "tls-sni-cert-key": Ignored("`--tls-cert-file` is the one certificate"),
    "disable-http2-serving": Ignored(_HTTP, ("true",), is_bool=True),
    "http2-max-streams-per-connection": Ignored(_HTTP),
    "permit-port-sharing": Ignored("the port is never shared", ("false",), is_bool=True),
    "permit-address-sharing": Ignored("addresses in TIME_WAIT are always taken", ("true", "false"), is_bool=True),
    "authentication-kubeconfig": Same(),
    "authentication-skip-lookup": Same(is_bool=True, bare=True),
    "authentication-tolerate-lookup-failure": Same(is_bool=True),
    "authentication-token-webhook-cache-ttl": Ignored(_TEN_SECONDS, ("10s",)),
    "client-ca-file": Same(),
    **{
        f"requestheader-{name}": Ignored(_FRONT_PROXY)
        for name in (
            "allowed-names",
            "client-ca-file",
            "extra-headers-prefix",
            "group-headers",
            "uid-headers",
            "username-headers",
        )
    },
    "authorization-kubeconfig": Same(),
    "authorization-always-allow-paths": Same(),
    "authorization-webhook-cache-authorized-ttl": Ignored(_TEN_SECONDS, ("10s",)),
    "authorization-webhook-cache-unauthorized-ttl": Ignored(_TEN_SECONDS, ("10s",)),
    "kubeconfig": Same("the same, also beside `--config`, where kube-scheduler ignores it"),
    "kube-api-qps": Applied("the same, without `--config`"),
    "kube-api-burst": Applied("the same, without `--config`"),
    "kube-api-content-type": Ignored("Podium speaks JSON", ("application/json",)),
    "pod-max-in-unschedulable-pods-duration": Applied(),
    "profiling": Ignored(_NO_PPROF, ("false",), is_bool=True),
    "contention-profiling": Ignored(_NO_PPROF, ("false",), is_bool=True),
    "leader-elect": Same(is_bool=True),
    "leader-elect-lease-duration": Same(),
    "leader-elect-renew-deadline": Same(),
    "leader-elect-retry-period": Same(),
    "leader-elect-resource-lock": Applied("the same: only `leases`"),
    "leader-elect-resource-name": Same(),
    "leader-elect-resource-namespace": Same(),
    "feature-gates": Same("the same names; Podium switches some: [Configuration](configuration.md#feature-gates)"),
    "emulated-version": Becomes(
        "`--kubernetes-version`, whose rules decide", "--kubernetes-version", lambda given: given.removeprefix("kube=")
    ),
    "min-compatibility-version": Ignored("every minor that Podium knows can be decided by: `--kubernetes-version`"),
    "show-hidden-metrics-for-version": Ignored("no metric is hidden"),
    "disabled-metrics": Ignored("every metric is served; drop some where you scrape them"),
    "allow-metric-labels": Ignored(_LABELS),
    "allow-metric-labels-manifest": Ignored(_LABELS),
    "v": Becomes(f"`--log-level`: debug from {_DEBUG} on, trace from {_TRACE} on, else info", "--log-level", level_of),
    "vmodule": Ignored("`--log-level` sets the level of the whole log"),
    "logging-format": Becomes("`--log-format`", "--log-format"),
    "log-flush-frequency": Ignored(_AT_ONCE),
    "log-text-split-stream": Ignored(_STDERR, ("false",), is_bool=True),
    "log-json-split-stream": Ignored(_STDERR, ("false",), is_bool=True),
    "log-text-info-buffer-size": Ignored(_AT_ONCE, ("0",)),
    "log-json-info-buffer-size": Ignored(_AT_ONCE, ("0",)),
}
"""Those of kube-scheduler v1.36, in the order of its help."""

DROPPED: Final[Mapping[str, Flag]] = {
    "port": Ignored(_NO_HTTP, ("0",)),
    "address": Ignored(_NO_HTTP),
    "lock-object-name": Becomes("`--leader-elect-resource-name`", "--leader-elect-resource-name"),
    "lock-object-namespace": Becomes("`--leader-elect-resource-namespace`", "--leader-elect-resource-namespace"),
    "logtostderr": Ignored(_STDERR, ("true",), is_bool=True),
    "alsologtostderr": Ignored(_STDERR, ("true", "false"), is_bool=True),
    "stderrthreshold": Ignored("`--log-level` is the threshold"),
    "log-dir": Ignored(_STDERR),
    "log-file": Ignored(_STDERR),
    "log-file-max-size": Ignored(_STDERR),
    "log-backtrace-at": Ignored("errors of plugins are logged with where they happened"),
    "add-dir-header": Ignored("lines have no file name", ("false",), is_bool=True),
    "one-output": Ignored(_STDERR, ("true", "false"), is_bool=True),
    "skip-headers": Ignored("lines have a time and a level", ("false",), is_bool=True),
    "skip-log-headers": Ignored(_STDERR, ("true", "false"), is_bool=True),
    "experimental-logging-sanitization": Ignored("credentials are always hidden", ("true",), is_bool=True),
    "scheduler-name": Gone("write profiles[].schedulerName in the file of --config"),
    "algorithm-provider": Gone("write profiles[].plugins in the file of --config"),
    "policy-config-file": Gone("write profiles and extenders in the file of --config"),
    "policy-configmap": Gone("write profiles and extenders in the file of --config"),
    "policy-configmap-namespace": Gone("write profiles and extenders in the file of --config"),
    "hard-pod-affinity-symmetric-weight": Gone(
        "write hardPodAffinityWeight in the arguments of InterPodAffinity, in the file of --config"
    ),
}
"""Those of older versions, which manifests may still have."""

_ALL: Final[Mapping[str, Flag]] = {**FLAGS, **DROPPED}


class ReadFlags(NamedTuple):
    """A command line in our words."""

    args: list[str]
    """Options made of flags come first, so that an option that is typed as well wins."""
    applied: dict[str, str]
    """The values of the flags that are `Applied`."""
    warnings: list[str]


def read_flags(args: Sequence[str]) -> ReadFlags:
    """The command line with kube-scheduler's flags in our words; raises InputError for one that cannot be meant.

    >>> read_flags(["-v=6", "--leader-elect", "--vmodule=a=1", "--config", "x.yaml"])
    ... # doctest: +NORMALIZE_WHITESPACE
    ReadFlags(args=['--log-level=debug', '--leader-elect=true', '--config=x.yaml'], applied={},
              warnings=['--vmodule is ignored: --log-level sets the level of the whole log'])
    """
    made: list[str] = []
    ours: list[str] = []
    applied: dict[str, str] = {}
    warnings: dict[str, str] = {}
    rest = iter(enumerate(args))
    for position, arg in rest:
        name, given = _split(arg)
        flag = _ALL.get(name)
        if flag is None:
            ours.append(arg)
            continue
        value = _value(name, flag, given, args[position + 1 : position + 2], rest)
        match flag:
            case Same():
                ours += [f"--{name}={value}"] if not flag.bare else [f"--{name}"] if value == "true" else []
            case Becomes():
                made.append(f"{flag.option}={flag.value(value)}")
            case Applied():
                applied[name] = value
            case Ignored():
                if value not in flag.fits:
                    warnings[name] = f"--{name} is ignored: {flag.here.replace('`', '')}"
            case Gone():
                raise InputError(f"--{name}: kube-scheduler has this flag no more: {flag.here}")
    return ReadFlags([*made, *ours], applied, list(warnings.values()))


def _split(arg: str) -> tuple[str, str | None]:
    """The name of a flag, and its value where one is joined to it; an empty name for anything else."""
    if (found := _LONG.fullmatch(arg)) is not None:
        return found["name"].replace("_", "-"), found["value"]
    if (found := _VERBOSITY.fullmatch(arg)) is not None:
        return "v", found["value"] or None
    return "", None


def _value(name: str, flag: Flag, given: str | None, following: Sequence[str], rest: Iterator[tuple[int, str]]) -> str:
    """What a flag says; takes the next argument where that is its value."""
    if given is None and (not flag.is_bool or (following and following[0] in ("true", "false"))):
        if not following:
            raise InputError(f"--{name} needs a value: write it as --{name}=VALUE")
        given = following[0]
        next(rest)
    if not flag.is_bool:
        return given or ""
    if given is None or given in _TRUE:
        return "true"
    if given in _FALSE:
        return "false"
    raise InputError(f'--{name} "{given}": write true or false')
