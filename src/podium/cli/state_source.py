"""Makes the state that a question rests on: from files, or from the live cluster with what its scheduler runs with."""

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from podium.cli.console import echo
from podium.cli.errors import InputError
from podium.cli.judging import LEFT_OUT, read_dumps, state_record, with_exported_config
from podium.cli.question_options import StateFlags

if TYPE_CHECKING:
    from podium.cli.configuration import Configured
    from podium.kube.versions import VersionRules
    from podium.whatif.applying import NodeMaker
    from podium.whatif.catalog import Catalog
    from podium.whatif.manifests import Given
    from podium.whatif.records import StateRecord
    from podium.whatif.sandbox import Sandbox
    from podium.whatif.sources import KnownState

    Configure = Callable[[VersionRules], Configured]


RARELY = 50_000, 20, 50
"""When Python looks for garbage in cycles: there is next to none, and looking through the cluster costs a quarter."""


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
        return state_record(self.known, self.configured.settings)


def load_state(flags: StateFlags, config: str | None = None, known: "KnownState | None" = None) -> AskedState:
    """The state that the options name, and what decides.

    `config` counts instead of `--config`. A state that is `known` is not read again.

    Raises InputError, and what reading raises.
    """
    from podium.cli.configuration import first_for_some_minor, given_rules, read_config, rules_of_dump

    if flags.cluster and (flags.kubeconfig or flags.context):
        raise InputError("--from is a dump and --kubeconfig a live cluster: give one of them")
    file = config or flags.config
    rules = given_rules(flags.kubernetes_version)
    first = first_for_some_minor(rules, lambda each: read_config(file, flags.plugin, flags.feature_gates, each))

    def configure(found: "VersionRules") -> "Configured":
        return read_config(file, flags.plugin, flags.feature_gates, rules or found, quiet=True)

    if known is not None:
        state = AskedState(known, configure(rules_of_dump(known.server_version)), "")
    elif flags.cluster:
        state = _from_files(flags, configure, rules, given=file is not None)
    else:
        state = _live(flags, configure, rules, first.settings.client_connection.kubeconfig, given=file is not None)
    gc.set_threshold(*RARELY)
    for extender in state.configured.settings.extenders:
        state.asides.append(f"warning: extenders are not asked: {extender.url_prefix}")
    return state


def _from_files(flags: StateFlags, configure: "Configure", rules: "VersionRules | None", *, given: bool) -> AskedState:
    from podium.cli.configuration import rules_of_dump
    from podium.load.readings import GivenLoad

    files = flags.cluster or []
    known = read_dumps(files, [], flags.verbose)
    configured = configure(rules or rules_of_dump(known.server_version))
    if known.config is not None and not given:
        configured = with_exported_config(configured, known.config, files[0])
    return AskedState(known, configured, "the files", GivenLoad())


def _live(
    flags: StateFlags, configure: "Configure", rules: "VersionRules | None", kubeconfig: str, *, given: bool
) -> AskedState:
    from podium.cli.configuration import rules_at
    from podium.cli.in_charge import in_charge_at
    from podium.cli.live_cluster import ask_cluster, cluster_access
    from podium.whatif.quotas import LIMIT_RANGES, QUOTAS
    from podium.whatif.sources import live_state

    access = cluster_access(flags.kubeconfig or kubeconfig or None, flags.context)
    configured = configure(rules or rules_at(access))
    registry = configured.registry
    asides: list[str] = []
    if not given:
        found = in_charge_at(access, registry, configured.settings.rules, named=False)
        if found is not None:
            configured = configured._replace(settings=found.settings)
            if found.missing:
                asides.append(f"warning: its scheduler runs with {', '.join(found.missing)}: give them with --plugin")
    objects, load, _last = ask_cluster(
        access, configured.settings, registry, lambda _objects: None, asides.append, (QUOTAS, LIMIT_RANGES)
    )
    missing = [each.partition(LEFT_OUT)[0] for each in asides if LEFT_OUT in each]
    return AskedState(live_state(objects, missing), configured, "the cluster", load, asides)


def read_questions(files: Sequence[str] | None) -> "Given":
    """What the files of -f hold."""
    from podium.cli.files import read_text
    from podium.whatif.manifests import read_given

    return read_given(read_text(file) for file in files or ())


def read_catalogs(files: Sequence[str] | None) -> "Catalog | None":
    """The catalog in these files; None without any."""
    from podium.cli.files import read_text
    from podium.whatif.catalog import read_catalog

    return read_catalog([read_text(file) for file in files]) if files else None


def node_maker(catalog: "Catalog | None") -> "NodeMaker":
    """Makes the nodes of `--add-nodes`: of the catalog's types, or of a manifest."""
    from podium.cli.files import read_text
    from podium.kube import Node, decode_documents
    from podium.whatif.applying import clone
    from podium.whatif.changes import AddNodes

    def make(change: AddNodes, name: str) -> Node:
        if change.file:
            nodes = [each for each in decode_documents(*read_text(change.file)).objects if isinstance(each, Node)]
            if len(nodes) != 1:
                raise InputError(f"{change.file}: {len(nodes)} nodes in it; give a manifest of one Node")
            return clone(nodes[0], name)
        if catalog is None:
            wanted = f"--add-nodes {change.count}={change.type}"
            raise InputError(f"{wanted}: give the catalog that has this type with --catalog, or write like:NODE")
        return catalog.make(change, name)

    return make


def say_asides(state: AskedState) -> None:
    for aside in state.asides:
        echo(aside, err=True)
