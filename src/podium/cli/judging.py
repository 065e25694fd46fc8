"""Answers `podium explain`: reads a dump or asks the live cluster, and judges one pod or all that wait.

A live pod is judged with what the scheduler in charge runs with, where that can be read. What is not known here is a
warning of the answer: plugins, extenders, measured load, and a scheduler that said something else.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from podium.cli.configuration import rules_at, rules_of_dump
from podium.cli.console import echo, progress_bar
from podium.cli.errors import InputError
from podium.cli.live_cluster import HOW_TO_DUMP, ask_cluster, cluster_access, scheduler_access
from podium.cli.target import NamedPod, find_pod, target_of
from podium.engine.explain import Explanation, Outcome, UnknownProfileError, explain, explain_waiting
from podium.framework.plugin_failures import FirstFailures

if TYPE_CHECKING:
    from collections import Counter

    from podium.cli.configuration import Configured
    from podium.client import Access
    from podium.config import SchedulerConfig
    from podium.framework.plugin_failures import PluginFailure
    from podium.kube import KubeObject, Pod
    from podium.kube.versions import VersionRules
    from podium.load.readings import LoadSource
    from podium.run.snapshot import PodEvent
    from podium.whatif.records import StateRecord
    from podium.whatif.sources import KnownState

LEFT_OUT = " are left out"
"""What follows a kind that the cluster withholds."""
NAMED = 3
"""Series that are named in a warning."""


class ExplainOptions(NamedTuple):
    """The options of `podium explain`."""

    pod: str | None
    every: bool
    namespace: str | None
    more: list[str]
    configure: "Callable[[VersionRules], Configured]"
    """Reads configuration and plugins, once it is known by which rules they count."""
    rules: "VersionRules | None"
    """Those of --kubernetes-version."""
    config_given: bool
    kubeconfig_of_config: str
    tries_plugins: bool
    """Whether plugins of --plugin are enabled beside the default ones."""
    scheduler: str | None
    parity: bool
    verbose: bool


@dataclass
class Explained:
    """One explanation, or one for each pod that waits."""

    explanations: list[Explanation]
    standing: dict[str, dict[str, Any]] = field(default_factory=dict)
    """How the pods stand in their scheduler's queue, where it can be read."""
    asides: list[str] = field(default_factory=list)
    """For standard error."""
    state: "StateRecord | None" = None
    """What the answer rests on."""

    @property
    def fits(self) -> bool:
        return all(each.outcome is Outcome.FITS for each in self.explanations)

    def to_compare(self) -> list[Any]:
        """What makes an answer another one."""
        return [(each.to_data(), each.outcome) for each in self.explanations]


def of_files(options: ExplainOptions, files: list[str]) -> Explained:
    """Judge on a dump."""
    from podium.load.readings import GivenLoad

    target = _target(options, "default")
    known = read_dumps(files, options.more, options.verbose)
    objects, given = _with_given(options, known.objects, "the files")
    load = GivenLoad()
    configured = options.configure(options.rules or rules_of_dump(known.server_version))
    if known.config is not None and not options.config_given:
        configured = with_exported_config(configured, known.config, files[0])
    answer = _judged(options, objects, given, target, configured, load, "the files")
    answer.state = state_record(known, configured.settings)
    if load.followed:
        series = sorted({str(getattr(each, "query", each)) for each in load.followed})
        named = ", ".join(series[:NAMED]) + (f" and {len(series) - NAMED} more" if len(series) > NAMED else "")
        _warn(answer, f"measured load was not fetched ({named}): plugins judge as if there was none; leave out --from")
    return answer


def of_cluster(options: ExplainOptions, kubeconfig: str | None, context: str | None) -> Explained:
    """Judge on the live cluster, with what its scheduler runs with."""
    from podium.cli.in_charge import in_charge_at

    access = cluster_access(kubeconfig or options.kubeconfig_of_config or None, context)
    configured = options.configure(options.rules or rules_at(access))
    registry = configured.registry
    at = scheduler_access(kubeconfig, context, options.scheduler) if options.scheduler else access
    from podium.whatif.sources import live_state

    found = None
    if not options.config_given:
        found = in_charge_at(at, registry, configured.settings.rules, named=options.scheduler is not None)
        if found is not None and options.tries_plugins and not _tried(configured) <= enabled_in(found.settings):
            found = None  # the question is what a plugin would do that the scheduler does not run with
    if found is not None:
        configured = configured._replace(settings=found.settings)
    target = _target(options, access.namespace)

    def choose(objects: "Sequence[KubeObject]") -> "Pod | None":
        if options.more or options.every:
            return None
        return find_pod(target, objects, (), "the cluster", namespace=options.namespace or "")[0]

    withheld: list[str] = []
    known, load, last = ask_cluster(access, configured.settings, registry, choose, withheld.append)
    objects, given = _with_given(options, known, "the cluster")
    try:
        answer = _judged(options, objects, given, target, configured, load, "the cluster")
    except UnknownProfileError as error:
        raise InputError(f"{error}; give that of its scheduler with --config, or --scheduler URL") from None
    answer.asides = [*withheld, *answer.asides]
    missing = [each.partition(LEFT_OUT)[0] for each in withheld if LEFT_OUT in each]
    answer.state = state_record(live_state(known, missing), configured.settings)
    unknown = {} if found is None else found.missing
    from_scheduler = bool(unknown) and found is not None and found.explains and not options.more
    if from_scheduler:
        _ask_scheduler(at, answer, "" if options.every else answer.explanations[0].pod)
    if options.every:
        answer.standing = _standing(at, answer, options.namespace or "")
    event = None if options.more else last
    advice = _advice(unknown) if unknown and not from_scheduler else ""
    if advice and (event is None or event.failed in (None, answer.explanations[0].message)):
        _warn(answer, f"not its scheduler's answer: {advice}")
    if event is not None:
        _compare(answer.explanations[0], event, advice or ("" if found is not None else _HOW))
    return answer


def _tried(configured: "Configured") -> frozenset[str]:
    """Plugins of --plugin that are enabled beside the default ones."""
    from podium.config import default_config

    settings, registry = configured
    return enabled_in(settings) - enabled_in(default_config(registry, settings.rules))


def enabled_in(settings: "SchedulerConfig") -> frozenset[str]:
    """The plugins that profiles enable."""
    return frozenset(name for profile in settings.profiles for names in profile.plugins.values() for name in names)


def _ask_scheduler(at: "Access", answer: Explained, pod: str) -> None:
    """Take over what the scheduler itself says, of one pod or of all that wait: it has the plugins."""
    import msgspec

    from podium.cli.in_charge import NoAnswerError, ask

    try:
        found = msgspec.convert(ask(at, "/explainz", {"pod": pod} if pod else None), list[Explanation])
    except (NoAnswerError, msgspec.ValidationError) as error:
        _warn(answer, f"its scheduler cannot explain it, so it was judged without its plugins: {error}")
        return
    here = {each.pod for each in answer.explanations}
    answer.explanations = [each for each in found if each.pod in here] or answer.explanations


def _standing(at: "Access", answer: Explained, namespace: str) -> dict[str, dict[str, Any]]:
    """How pods stand in the queue; those held at Permit are said to be so."""
    from podium.cli.in_charge import NoAnswerError
    from podium.cli.queue import ask_queue

    try:
        page = ask_queue(at, namespace, limit=10_000)
    except NoAnswerError:
        answer.asides.append("attempts and next tries are not known: no scheduler shows its queue (--scheduler URL)")
        return {}
    standing = {each["pod"]: each for each in page["pods"]}
    for explanation in answer.explanations:
        held = standing.get(explanation.pod, {}).get("message")
        if held:
            explanation.outcome, explanation.message = Outcome.WAITS, held
    return standing


_HOW = "give --config and --plugin as it has them, or --scheduler URL"


def _advice(missing: dict[str, str]) -> str:
    files = sorted({each for each in missing.values() if each})
    how = " ".join(f"--plugin {each}" for each in files) or "--plugin"
    return f"it runs with {', '.join(missing)}, without which the pod was judged here: give {how}"


def _compare(explanation: Explanation, last: "PodEvent", advice: str) -> None:
    """Take over that a plugin holds the pod, which only its scheduler knows, and say where that decided otherwise.

    `advice` says how to judge as it does; without any, this was done, and only the cluster may have changed.
    """
    if last.held is not None:
        explanation.outcome, explanation.message = Outcome.WAITS, last.held
    elif last.failed is not None and advice and last.failed != explanation.message:
        explanation.warnings.append(f"its scheduler decided otherwise: {last.failed} ({advice})")
    elif last.failed is not None and explanation.outcome is Outcome.FITS:
        explanation.warnings.append(f"at its last attempt its scheduler said: {last.failed}")


def _warn(answer: Explained, warning: str) -> None:
    for explanation in answer.explanations:
        explanation.warnings.append(warning)


def _target(options: ExplainOptions, namespace: str) -> NamedPod | None:
    if options.pod is None:
        return None
    return target_of(options.pod, options.namespace or namespace, given=options.namespace is not None)


def _judged(
    options: ExplainOptions,
    objects: "list[KubeObject]",
    given: "list[KubeObject]",
    target: NamedPod | None,
    configured: "Configured",
    load: "LoadSource",
    origin: str,
) -> Explained:
    settings, registry = configured
    failures: list[PluginFailure] = []
    first = FirstFailures(failures.append)
    asides = []
    if options.every:
        explanations = [
            each
            for each in explain_waiting(objects, settings, registry, load=load, parity=options.parity, on_failure=first)
            if options.namespace in (None, each.pod.partition("/")[0])
        ]
        asides += _others(objects, settings)
    else:
        pod, aside = find_pod(target, objects, given, origin, namespace=options.namespace or "")
        asides += [aside] if aside else []
        explanations = [explain(objects, pod, settings, registry, load=load, parity=options.parity, on_failure=first)]
    traced = [each for each in failures if each.traceback()]
    if options.verbose:
        asides += [f"{each}\n{each.traceback()}" for each in traced]
    elif traced:
        asides.append("-v shows where it failed")
    answer = Explained(explanations, asides=asides)
    if settings.extenders:
        _warn(answer, f"extenders were not asked: {', '.join(each.url_prefix for each in settings.extenders)}")
    return answer


def _others(objects: "list[KubeObject]", settings: "SchedulerConfig") -> list[str]:
    """Which pods that wait are not judged: those of schedulers that the configuration does not have."""
    from podium.kube import Pod

    waiting = [each for each in objects if isinstance(each, Pod) and not each.node_name and not each.finished]
    others = [pod.spec.scheduler_name for pod in waiting if settings.profile(pod.spec.scheduler_name) is None]
    if not others:
        return []
    pods = "1 pod waits" if len(others) == 1 else f"{len(others)} pods wait"
    return [f"left out: {pods} for another scheduler ({', '.join(sorted(set(others)))})"]


def with_exported_config(configured: "Configured", config: str, file: str) -> "Configured":
    """With the configuration that an export of another tool holds."""
    from podium.config import load_config

    source = f"{file} (schedulerConfig)"
    settings, warnings = load_config(config, source, configured.registry, configured.settings.rules)
    for warning in warnings:
        echo(f"warning: {warning}", err=True)
    return configured._replace(settings=settings)


def state_record(known: "KnownState", settings: "SchedulerConfig") -> "StateRecord":
    """What an answer rests on, as it says it."""
    from podium.kube import Node, Pod
    from podium.whatif.records import StateRecord

    return StateRecord(
        source=known.source,
        resource_version=known.resource_version,
        kubernetes_version=str(settings.rules),
        nodes=sum(isinstance(each, Node) for each in known.objects),
        pods=sum(isinstance(each, Pod) and not each.finished for each in known.objects),
        missing_kinds=known.missing,
    )


def read_dumps(files: list[str], more: list[str], verbose: bool) -> "KnownState":
    """What the files of --from hold; `more` are others that are read, too.

    Raises InputError, and what reading raises.
    """
    from podium.cli.files import STDIN, read_bytes
    from podium.whatif.sources import read_state

    if [*files, *more].count(STDIN) > 1:
        raise InputError('standard input can be read only once: give "-" once')
    with progress_bar(0, f"reading {', '.join(files)}"):
        known = read_state(read_bytes(file) for file in files)
    if not known.objects:
        raise InputError(f"{', '.join(files)}: no objects that scheduling knows; try {HOW_TO_DUMP}")
    print_skipped(known.skipped, verbose)
    return known


def _with_given(
    options: ExplainOptions, objects: "list[KubeObject]", origin: str
) -> "tuple[list[KubeObject], list[KubeObject]]":
    """All objects, those given with -f last, and those alone."""
    from podium.cli.files import read_objects
    from podium.kube.admission import as_admitted, with_claims_made

    more = options.more
    given, skipped, _ = read_objects(more)
    objects, given = as_admitted(objects, given, origin), as_admitted(given, objects, origin)
    given = with_claims_made(given, objects)
    print_skipped(skipped, options.verbose)
    if more and options.pod is None and not given and skipped:
        raise InputError(f"{', '.join(more)}: no pod in it, only {', '.join(sorted(skipped))}; give the Pod itself")
    return [*objects, *given], given


def print_skipped(skipped: "Counter[str]", verbose: bool) -> None:
    """Say what was passed over in files: always what another version would hold, the rest where it is asked for."""
    from podium.kube import readable_version

    for kind, count in sorted(skipped.items()):
        version = readable_version(kind)
        if version is not None:
            echo(f"{count} {kind} left out: only {version} is read; dump them in that version", err=True)
    if verbose and skipped:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(skipped.items()))
        echo(f"skipped {skipped.total()} objects that scheduling has no use for: {kinds}", err=True)
