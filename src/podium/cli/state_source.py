"""Makes the state that a question rests on: from files, or from the live cluster with what its scheduler runs with."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from podium.cli.console import echo
from podium.cli.errors import InputError
from podium.cli.question_options import StateFlags

if TYPE_CHECKING:
    from podium.cli.configuration import Configured
    from podium.whatif.manifests import Given
    from podium.whatif.records import StateRecord
    from podium.whatif.sandbox import Sandbox
    from podium.whatif.sources import KnownState


@dataclass
class AskedState:
    """The state of a cluster, what decides on it, and what to say beside the answer."""

    known: "KnownState"
    configured: "Configured"
    origin: str
    load: Any = None
    asides: list[str] = field(default_factory=list)

    def sandbox(self, extra: Sequence[Any] = (), configured: "Configured | None" = None) -> "Sandbox":
        """The cluster to try things on; `extra` objects count instead of those of their names."""
        from podium.kube.admission import as_admitted
        from podium.whatif.sandbox import Sandbox

        settings, registry = configured or self.configured
        objects = as_admitted(self.known.objects, extra, self.origin)
        return Sandbox([*objects, *extra], settings, registry, load=self.load)

    def record(self) -> "StateRecord":
        from podium.kube import Node, Pod
        from podium.whatif.records import StateRecord

        return StateRecord(
            source=self.known.source,
            resource_version=self.known.resource_version,
            kubernetes_version=version_of(self.configured),
            nodes=sum(isinstance(each, Node) for each in self.known.objects),
            pods=sum(isinstance(each, Pod) and not each.finished for each in self.known.objects),
            missing_kinds=self.known.missing,
        )


def version_of(configured: "Configured") -> str | None:
    """The Kubernetes version whose rules decide."""
    version = getattr(configured.settings, "kubernetes_version", None)
    return None if version is None else str(version)


def read_asked_state(flags: StateFlags, configured: "Configured | None" = None) -> AskedState:
    """The state that the options name; raises InputError, and what reading raises."""
    from podium.cli.configuration import read_config

    if flags.cluster and (flags.kubeconfig or flags.context):
        raise InputError("--from is a dump and --kubeconfig a live cluster: give one of them")
    found = configured or read_config(flags.config, flags.plugin, flags.feature_gates)
    state = _from_files(flags, found) if flags.cluster else _live(flags, found)
    for extender in state.configured.settings.extenders:
        state.asides.append(f"warning: extenders are not asked: {extender.url_prefix}")
    return state


def _from_files(flags: StateFlags, configured: "Configured") -> AskedState:
    from podium.cli.files import STDIN, read_bytes
    from podium.cli.judging import print_skipped
    from podium.cli.live_cluster import HOW_TO_DUMP
    from podium.config import load_config
    from podium.load.readings import GivenLoad
    from podium.whatif.sources import read_state

    files = flags.cluster or []
    if files.count(STDIN) > 1:
        raise InputError('standard input can be read only once: give "-" once')
    known = read_state(read_bytes(file) for file in files)
    if not known.objects:
        raise InputError(f"{', '.join(files)}: no objects that scheduling knows; try {HOW_TO_DUMP}")
    print_skipped(known.skipped, flags.verbose)
    if known.config is not None and flags.config is None:
        settings, _warnings = load_config(known.config, f"{files[0]} (schedulerConfig)", configured.registry)
        configured = configured._replace(settings=settings)
    return AskedState(known, configured, "the files", GivenLoad())


def _live(flags: StateFlags, configured: "Configured") -> AskedState:
    from podium.cli.in_charge import in_charge_at
    from podium.cli.live_cluster import ask_cluster, cluster_access
    from podium.whatif.sources import KnownState

    settings, registry = configured
    access = cluster_access(flags.kubeconfig or settings.client_connection.kubeconfig or None, flags.context)
    asides: list[str] = []
    if flags.config is None:
        found = in_charge_at(access, registry, settings.gates, named=False)
        if found is not None:
            configured = configured._replace(settings=found.settings)
            if found.missing:
                asides.append(f"warning: its scheduler runs with {', '.join(found.missing)}: give them with --plugin")
    objects, load, _last = ask_cluster(access, configured.settings, registry, lambda _objects: None, asides.append)
    missing = [each.partition(" are left out")[0] for each in asides if " are left out" in each]
    return AskedState(KnownState("live", list(objects), missing=missing), configured, "the cluster", load, asides)


def read_questions(files: Sequence[str] | None) -> "Given":
    """What the files of -f hold."""
    from podium.cli.files import read_text
    from podium.whatif.manifests import read_given

    return read_given(read_text(file) for file in files or ())


def say_asides(state: AskedState) -> None:
    for aside in state.asides:
        echo(aside, err=True)
