"""Reads and merges kubeconfig files, and selects one context.

Several files may be listed in $KUBECONFIG. Of entries with the same name the first file's is used, whole; so is the
first `current-context`. Files of the list that do not exist are passed over. Relative paths mean the folder of the file
they stand in, so every entry comes with its location. Unknown fields are ignored; known ones must be right, and
`EntryLocation.error` says which one is not, in one sentence, never with its content, which may be secret.
"""

import base64
import binascii
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from podium.client.api_errors import AccessError
from podium.kube.documents import SETTINGS, DocumentError, read_file, read_yaml
from podium.kube.json_object import without_null_fields


class KubeconfigEntry(msgspec.Struct, rename="kebab", kw_only=True):
    """A field that is left empty (`users:` and nothing) reads as one that is not there."""


class ClusterExtension(KubeconfigEntry):
    name: str = ""
    extension: Any = None


class KubeconfigCluster(KubeconfigEntry):
    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""
    disable_compression: bool = False
    extensions: list[ClusterExtension] = []


class EnvironmentVariable(KubeconfigEntry):
    name: str = ""
    value: str = ""


class ExecConfig(msgspec.Struct, rename="camel", kw_only=True):
    command: str = ""
    args: list[str] = []
    env: list[EnvironmentVariable] = []
    api_version: str = ""
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class AuthProvider(KubeconfigEntry):
    name: str = ""


class KubeconfigUser(KubeconfigEntry):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    as_: str = msgspec.field(default="", name="as")
    as_uid: str = ""
    as_groups: list[str] = []
    as_user_extra: dict[str, list[str]] = {}
    auth_provider: AuthProvider | None = None
    exec: ExecConfig | None = None


class KubeconfigContext(KubeconfigEntry):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class NamedCluster(KubeconfigEntry):
    name: str = ""
    cluster: KubeconfigCluster = msgspec.field(default_factory=KubeconfigCluster)


class NamedUser(KubeconfigEntry):
    name: str = ""
    user: KubeconfigUser = msgspec.field(default_factory=KubeconfigUser)


class NamedContext(KubeconfigEntry):
    name: str = ""
    context: KubeconfigContext = msgspec.field(default_factory=KubeconfigContext)


class Kubeconfig(KubeconfigEntry):
    current_context: str = ""
    clusters: list[NamedCluster] = []
    users: list[NamedUser] = []
    contexts: list[NamedContext] = []


T = TypeVar("T")

_QUOTED = re.compile(r" ['\"].*['\"]")


class EntryLocation(NamedTuple):
    """Where an entry stands: the file and the entry's kind and name."""

    file: Path
    entry: str = ""

    def __str__(self) -> str:
        return f"{self.file}: {self.entry}" if self.entry else str(self.file)

    def error(self, sentence: str) -> AccessError:
        return AccessError(f"{self}: {sentence}")

    def path(self, value: str) -> Path:
        """A path of this entry, relative ones from the file's folder."""
        return self.file.absolute().parent / value

    def decoded(self, field: str, value: str) -> bytes:
        """The content of a …-data field."""
        try:
            return base64.b64decode("".join(value.split()), validate=True)
        except (binascii.Error, ValueError):
            raise self.error(f"{field} is not base64: encode the PEM file with base64") from None


class SelectedContext(NamedTuple):
    """One context with what it refers to, and where each was found."""

    context: KubeconfigContext
    cluster: KubeconfigCluster
    cluster_location: EntryLocation
    user: KubeconfigUser
    user_location: EntryLocation


def select(files: Sequence[Path], name: str | None) -> SelectedContext:
    """The named context, or the current one, of the merged files. Raises AccessError."""
    documents = [(file, _read(file)) for file in files]
    first = EntryLocation(documents[0][0])
    contexts = _merged([(file, entry.name, entry.context) for file, content in documents for entry in content.contexts])
    clusters = _merged([(file, entry.name, entry.cluster) for file, content in documents for entry in content.clusters])
    users = _merged([(file, entry.name, entry.user) for file, content in documents for entry in content.users])
    current = next((content.current_context for _, content in documents if content.current_context), "")
    name = name or current
    if not name:
        choice = f": name one of {_names(contexts)}" if contexts else ", and there are no contexts: add one"
        raise first.error(f"current-context is not set{choice}")
    if name not in contexts:
        raise first.error(f"there is no context {name!r}: there are {_names(contexts)}")
    file, context = contexts[name]
    location = EntryLocation(file, f"context {name!r}")
    if context.cluster not in clusters:
        raise location.error(f"its cluster {context.cluster!r} is not in the file: there are {_names(clusters)}")
    cluster_file, cluster = clusters[context.cluster]
    cluster_location = EntryLocation(cluster_file, f"cluster {context.cluster!r}")
    if not context.user:
        return SelectedContext(context, cluster, cluster_location, KubeconfigUser(), location)
    if context.user not in users:
        raise location.error(f"its user {context.user!r} is not in the file: there are {_names(users)}")
    user_file, user = users[context.user]
    return SelectedContext(context, cluster, cluster_location, user, EntryLocation(user_file, f"user {context.user!r}"))


def _merged(entries: list[tuple[Path, str, T]]) -> dict[str, tuple[Path, T]]:
    found: dict[str, tuple[Path, T]] = {}
    for file, name, entry in entries:
        found.setdefault(name, (file, entry))
    return found


def _names(entries: dict[str, Any]) -> str:
    return ", ".join(repr(name) for name in entries) or "none"


def _read(file: Path) -> Kubeconfig:
    location = EntryLocation(file)
    try:
        content = read_yaml(read_file(file, SETTINGS), bounds=SETTINGS)
    except OSError as error:
        raise location.error(f"the kubeconfig cannot be read: {error.strerror}") from None
    except DocumentError as error:
        line = f"line {error.line}: " if error.line else ""
        what = "is not YAML" if error.language else "cannot be read"
        problem = _QUOTED.sub("", error.problem)  # a password that begins with ! is read as a tag, and quoted
        raise location.error(f"the kubeconfig {what}: {line}{problem}") from None
    if not isinstance(content, dict):
        raise location.error("this is no kubeconfig: it must have clusters, users and contexts")
    if content.get("kind", "Config") != "Config":
        raise location.error(f"this is no kubeconfig: kind is {content['kind']!r} and must be Config")
    try:
        return msgspec.convert(without_null_fields(content), Kubeconfig)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$.")
        raise location.error(f"{where.rstrip('`') or 'the file'}: {_lowered(what)}") from None


def _lowered(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]
