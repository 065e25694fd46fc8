"""An empty Kubernetes control plane on loopback, of real components, for tests.

etcd listens on a socket in a temporary folder and never syncs to disk; the API server gets fresh certificates and one
token whose user may do everything. No kubelet and no controllers run, so nodes and pods are what the tests write and
stay so. Admission is set up for that: plugins that would add to what a test wrote (default tolerations, a not-ready
taint, service account volumes), that would refuse a numeric `spec.priority`, or that set finalizers which only a
controller removes are off.

    with ControlPlane() as plane:
        plane.client.create(node)
        scheduler = plane.start_scheduler({"profiles": [...]}, verbosity=10)
        ...
        scheduler.stop()
"""

import atexit
import os
import secrets
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from cryptography.hazmat.primitives.asymmetric import ec

from tools.testbed.apiclient import ApiClient
from tools.testbed.audit import audit_flags
from tools.testbed.certificates import CertificateAuthority, KeyPair, write_private_key
from tools.testbed.connections import ConnectionPool
from tools.testbed.folders import OwnedFolder
from tools.testbed.podium import podium_command, podium_config, podium_environment, podium_probe
from tools.testbed.ports import LOOPBACK
from tools.testbed.processes import Component, ComponentFailed
from tools.testbed.wipe import wipe

_APISERVER = 1  # its place among the components: after etcd, before all that uses it

DISABLED_ADMISSION = (
    "ServiceAccount",  # pods need no service account
    "TaintNodesByCondition",  # a created node gets no not-ready taint, which only a controller would take off
    "DefaultTolerationSeconds",  # pods keep exactly the tolerations they were written with
    "StorageObjectInUseProtection",  # its finalizers, and those of the next, are removed by controllers only
    "PodGroupProtection",
)


class ControlPlane:
    """etcd and kube-apiserver, and on request kube-scheduler and kube-controller-manager.

    kubernetes: the minor whose components are started, as 1.37; without it the one that tests run on.
    feature_gates, runtime_config: as for kube-apiserver; the gates are passed to the other components too.
    priority_admission: have the API server compute `spec.priority` from the class, and refuse any other number.
    disabled_admission: admission plugins to turn off, in addition to Priority.
    audit: write every binding and every change of a lease, with who asked for it, to `audit_log` (see audit.py).
    audit_everything: write every other request there, too, without its content.
    apiserver_flags: more flags, which win over those given here.

    `server`, `token`, `ca_path` and `kubeconfig_path` are how to reach it as an administrator, `client` does so;
    `authority` issues client certificates for other users; `start_seconds` is how long the start took.
    """

    def __init__(
        self,
        *,
        kubernetes: str = "",
        feature_gates: Mapping[str, bool] | None = None,
        runtime_config: Mapping[str, bool] | None = None,
        priority_admission: bool = False,
        disabled_admission: Sequence[str] = DISABLED_ADMISSION,
        audit: bool = False,
        audit_everything: bool = False,
        apiserver_flags: Sequence[str] = (),
    ) -> None:
        self._kubernetes = kubernetes
        self._feature_gates = dict(feature_gates or {})
        self._runtime_config = dict(runtime_config or {})
        self._disabled_admission = [*disabled_admission, *([] if priority_admission else ["Priority"])]
        self._audit = audit or audit_everything
        self._audit_everything = audit_everything
        self._apiserver_flags = apiserver_flags
        self._components: list[Component] = []
        self._named: Counter[str] = Counter()
        self._reserved_ports: list[socket.socket] = []
        self._folder: OwnedFolder | None = None

    def __enter__(self) -> "ControlPlane":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Build the programs if need be and start; raises TestbedUnavailable where they cannot be built."""
        # Imported here, or `python -m tools.testbed.build` would find itself loaded already, by the package.
        from tools.testbed.build import MINOR, programs

        minor = self._kubernetes or MINOR
        self._programs = programs(f"kubernetes-{minor}", "etcd")
        if minor == "1.35":  # an admission plugin that a version does not know is refused
            self._disabled_admission = [each for each in self._disabled_admission if each != "PodGroupProtection"]
        began = time.monotonic()
        self._folder = OwnedFolder()
        self.folder = self._folder.path
        atexit.register(self.stop)
        try:
            self._start_in(self.folder)
        except BaseException:
            self.stop()
            raise
        self.start_seconds = time.monotonic() - began

    def stop(self) -> None:
        """End everything that was started and remove the temporary folder; may be called twice."""
        atexit.unregister(self.stop)
        if hasattr(self, "client"):
            self.client.close()
        for component in reversed(self._components):  # etcd last: an API server that has lost it takes long to end
            component.stop()
        self._components.clear()
        for reserved in self._reserved_ports:
            reserved.close()
        self._reserved_ports.clear()
        if self._folder is not None:
            self._folder.remove()
            self._folder = None

    def stop_components(self) -> None:
        """Stop every scheduler and controller manager; etcd and the API server go on."""
        for component in self._components[_APISERVER + 1 :]:
            component.stop()
        del self._components[_APISERVER + 1 :]

    @property
    def pids(self) -> list[int]:
        """The process ids of all components that were started and not stopped."""
        return [component.pid for component in self._components if component.running]

    def new_client(self, *, token: str | None = None, workers: int = 8) -> ApiClient:
        """Another client, of the administrator or of the user that `token` belongs to; the caller closes it."""
        return ApiClient(self.server, ca_path=self.ca_path, token=token or self.token, workers=workers)

    def wipe(self) -> None:
        """Delete what tests created: workloads, nodes, volumes, priority classes, namespaces (see wipe.py)."""
        wipe(self.client)

    def start_scheduler(
        self,
        config: Path | Mapping[str, Any] | None = None,
        *,
        verbosity: int = 2,
        flags: Sequence[str] = (),
        timeout: float = 60.0,
    ) -> Component:
        """Start kube-scheduler and return when its caches are filled.

        `config` is a KubeSchedulerConfiguration, as a file or its content; the copy that is used has the connection
        set, no leader election and, unless it says otherwise, no client-side rate limit. Log: `.log_path`.
        """
        name = self._new_name("kube-scheduler")
        config_path = self.folder / f"{name}.yaml"
        config_path.write_text(yaml.safe_dump(self._scheduler_config(config)))
        command = [f"--config={config_path}", *self._delegated_auth_flags(), f"--v={verbosity}", *flags]
        return self._start_serving("kube-scheduler", name, command, "/readyz", timeout)

    def start_podium(
        self,
        config: Path | Mapping[str, Any] | None = None,
        *,
        kubeconfig: Path | None = None,
        flags: Sequence[str] = (),
        wait: bool = True,
        timeout: float = 60.0,
    ) -> Component:
        """Start `podium run` of this interpreter and return when it is ready, or with `wait=False` at once.

        `config` is as for `start_scheduler`, except that it may ask for leader election. Ready is what /readyz says,
        or with the flag `--secure-port=0` the log.
        """
        name = self._new_name("podium")
        config_path = self.folder / f"{name}.yaml"
        config_path.write_text(yaml.safe_dump(podium_config(config)))
        command = podium_command(config_path, kubeconfig or self.kubeconfig_path, flags)
        log_path = self.folder / f"{name}.log"
        component = Component(name, command.arguments, log_path, url=command.url, environment=podium_environment())
        self._components.append(component)
        if wait:
            with podium_probe(component) as ready:
                self._await(component, ready, timeout)
        return component

    def start_program(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        url: str = "",
        ready: str = "",
        environment: Mapping[str, str] | None = None,
        timeout: float = 60.0,
    ) -> Component:
        """Start any other program beside the control plane, and return when its log says `ready`."""
        name = self._new_name(name)
        component = Component(name, command, self.folder / f"{name}.log", url=url, environment=environment)
        self._components.append(component)
        self._await(component, lambda: ready in component.log_text(), timeout)
        return component

    def kill_apiserver(self) -> None:
        """End the API server at once, as a crash would; what it has stored stays in etcd."""
        self._components[_APISERVER].kill()

    def restart_apiserver(self, kubernetes: str = "") -> None:
        """Start the API server again, at the same address, on the same data and with the same log; that of another
        minor, where one is given."""
        from tools.testbed.build import programs

        self._components[_APISERVER].stop()
        if kubernetes:
            self._apiserver_command[0] = programs(f"kubernetes-{kubernetes}")["kube-apiserver"]
        # Clients that come back all at once can make it too slow for its own deadlines, at which it ends by itself;
        # a kubelet would start it again too.
        for attempts_left in (2, 1, 0):
            try:
                self._components[_APISERVER] = self._run_apiserver()
                return
            except ComponentFailed:
                if not attempts_left:
                    raise

    def set_tokens(self, users: Mapping[str, str]) -> None:
        """Tokens of other users (token → user name), from the next start of the API server on."""
        lines = [
            f'{self.token},admin,admin,"system:masters"',
            *(f"{token},{user},{user}" for token, user in users.items()),
        ]
        tokens = self.folder / "tokens.csv"
        tokens.touch(mode=0o600)
        tokens.write_text("\n".join(lines) + "\n")

    def start_controller_manager(
        self,
        controllers: Sequence[str] = ("*",),
        *,
        verbosity: int = 2,
        flags: Sequence[str] = (),
        timeout: float = 60.0,
    ) -> Component:
        """Start kube-controller-manager with the named controllers (`-name` takes one out of `*`)."""
        command = [
            f"--controllers={','.join(controllers)}",
            f"--kubeconfig={self.kubeconfig_path}",
            "--leader-elect=false",
            "--allocate-node-cidrs=false",
            f"--service-account-private-key-file={self._service_account_key}",
            f"--root-ca-file={self.ca_path}",
            "--kube-api-qps=1000",
            "--kube-api-burst=1000",
            *self._delegated_auth_flags(),
            f"--v={verbosity}",
            *flags,
        ]
        name = self._new_name("kube-controller-manager")
        return self._start_serving("kube-controller-manager", name, command, "/healthz", timeout)

    def kubectl(self, *arguments: str, stdin: str | None = None, check: bool = True) -> str:
        """What `kubectl ARGUMENTS` prints, as the administrator; CalledProcessError with its errors if it fails."""
        environment = {**os.environ, "KUBECONFIG": str(self.kubeconfig_path), "HOME": str(self.folder)}
        command = [str(self._programs["kubectl"]), *arguments]
        result = subprocess.run(
            command, input=stdin, env=environment, capture_output=True, text=True, check=False, timeout=120
        )
        if check and result.returncode != 0:
            raise subprocess.CalledProcessError(result.returncode, command, result.stdout, result.stderr)
        return result.stdout

    def write_kubeconfig(
        self, path: Path, *, token: str | None = None, certificate: KeyPair | None = None, server: str | None = None
    ) -> Path:
        """Write a kubeconfig for the administrator, or for the owner of `token` or `certificate`."""
        if certificate is not None:
            user = {"client-certificate": str(certificate.certificate), "client-key": str(certificate.key)}
        else:
            user = {"token": token or self.token}
        cluster = {"server": server or self.server, "certificate-authority": str(self.ca_path)}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "testbed", "cluster": cluster}],
            "users": [{"name": "testbed", "user": user}],
            "contexts": [{"name": "testbed", "context": {"cluster": "testbed", "user": "testbed"}}],
            "current-context": "testbed",
        }
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(content))
        return path

    def _start_in(self, folder: Path) -> None:
        self.authority = CertificateAuthority(folder)
        self.ca_path = self.authority.certificate
        self._serving = self.authority.issue("testbed-server", hosts=(LOOPBACK, "localhost"))
        self._service_account_key = folder / "service-account.key"
        write_private_key(self._service_account_key, ec.generate_private_key(ec.SECP256R1()))
        self.token = secrets.token_hex(16)
        self.set_tokens({})
        self.audit_log = folder / "audit.log"
        etcd_url = self._start_etcd(folder)
        port = self._reserve_port()
        self.server = f"https://{LOOPBACK}:{port}"
        self.client = self.new_client()
        self.kubeconfig_path = self.write_kubeconfig(folder / "kubeconfig")
        self._apiserver_command = self._apiserver_arguments(folder, etcd_url, port)
        self._components.append(self._run_apiserver())

    def _start_etcd(self, folder: Path) -> str:
        # A socket needs no port. Nothing connects to the advertised address or to the peer port, which etcd wants.
        url = f"unix://{folder / 'etcd.sock'}"
        command: list[str | Path] = [
            self._programs["etcd"],
            f"--data-dir={folder / 'etcd'}",
            f"--listen-client-urls={url}",
            "--advertise-client-urls=http://127.0.0.111:0",
            f"--listen-peer-urls=http://{LOOPBACK}:0",
            "--unsafe-no-fsync",
            f"--quota-backend-bytes={8 << 30}",
            "--log-level=warn",
        ]
        self._components.append(Component("etcd", command, folder / "etcd.log"))
        return url

    def _apiserver_arguments(self, folder: Path, etcd_url: str, port: int) -> list[str | Path]:
        return [
            self._programs["kube-apiserver"],
            f"--etcd-servers={etcd_url}",
            f"--bind-address={LOOPBACK}",
            f"--advertise-address={LOOPBACK}",
            f"--secure-port={port}",
            "--permit-port-sharing",
            f"--tls-cert-file={self._serving.certificate}",
            f"--tls-private-key-file={self._serving.key}",
            f"--client-ca-file={self.ca_path}",
            f"--token-auth-file={folder / 'tokens.csv'}",
            "--service-account-issuer=https://testbed.invalid",
            f"--service-account-key-file={self._service_account_key}",
            f"--service-account-signing-key-file={self._service_account_key}",
            "--service-cluster-ip-range=10.0.0.0/16",
            "--endpoint-reconciler-type=none",
            "--authorization-mode=RBAC",
            "--allow-privileged",
            f"--disable-admission-plugins={','.join(self._disabled_admission)}",
            # One busy test is the only user: no queueing, no tracing, no profiling between it and the store.
            "--enable-priority-and-fairness=false",
            "--max-requests-inflight=3000",
            "--max-mutating-requests-inflight=1000",
            "--delete-collection-workers=4",
            "--watch-cache=true",
            "--profiling=false",
            "--shutdown-delay-duration=0s",
            *_switches("--runtime-config", self._runtime_config),
            *_switches("--feature-gates", self._feature_gates),
            *(self._audit_flags(folder) if self._audit else ()),
            *self._apiserver_flags,
        ]

    def _audit_flags(self, folder: Path) -> list[str]:
        return audit_flags(folder / "audit-policy.yaml", self.audit_log, everything=self._audit_everything)

    def _run_apiserver(self) -> Component:
        log_path = self.folder / "kube-apiserver.log"
        apiserver = Component("kube-apiserver", self._apiserver_command, log_path, url=self.server)
        pool = ConnectionPool(self.server, ca_path=self.ca_path, headers={"Authorization": f"Bearer {self.token}"})
        self._await(apiserver, lambda: _answers(pool, "/readyz"), 120.0)
        pool.close()
        return apiserver

    def _start_serving(self, program: str, name: str, flags: Sequence[str], probe: str, timeout: float) -> Component:
        port = self._reserve_port()
        command: list[str | Path] = [
            self._programs[program],
            f"--bind-address={LOOPBACK}",
            f"--secure-port={port}",
            "--permit-port-sharing",
            f"--tls-cert-file={self._serving.certificate}",
            f"--tls-private-key-file={self._serving.key}",
            *_switches("--feature-gates", self._feature_gates),
            *flags,
        ]
        component = Component(name, command, self.folder / f"{name}.log", url=f"https://{LOOPBACK}:{port}")
        self._components.append(component)
        pool = ConnectionPool(component.url, ca_path=self.ca_path)
        self._await(component, lambda: _answers(pool, probe), timeout)
        pool.close()
        return component

    def _await(self, component: Component, ready: Callable[[], bool], timeout: float) -> None:
        try:
            component.wait_until_ready(ready, timeout)
        except BaseException:
            component.stop()
            raise

    def _delegated_auth_flags(self) -> list[str]:
        # So that the administrator's token also opens a component's own /metrics and /configz.
        return [f"--{kind}-kubeconfig={self.kubeconfig_path}" for kind in ("authentication", "authorization")]

    def _scheduler_config(self, config: Path | Mapping[str, Any] | None) -> dict[str, Any]:
        given: dict[str, Any] = yaml.safe_load(config.read_text()) if isinstance(config, Path) else dict(config or {})
        connection = {"qps": -1, **given.get("clientConnection", {}), "kubeconfig": str(self.kubeconfig_path)}
        return {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            **given,
            "clientConnection": connection,
            "leaderElection": {**given.get("leaderElection", {}), "leaderElect": False},
        }

    def _reserve_port(self) -> int:
        # Held until the end and shared with the component (--permit-port-sharing), so no other process can get it
        # between the choice and the component's own bind. Never listening, it receives no connections.
        reserved = socket.socket()
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        reserved.bind((LOOPBACK, 0))
        self._reserved_ports.append(reserved)
        port: int = reserved.getsockname()[1]
        return port

    def _new_name(self, program: str) -> str:
        """A name that nothing had before, so that the log of one that is gone is never read."""
        self._named[program] += 1
        number = self._named[program]
        return f"{program}-{number}" if number > 1 else program


def _answers(pool: ConnectionPool, path: str) -> bool:
    try:
        return pool.request("GET", path).status == 200
    except OSError:
        return False


def _switches(flag: str, switches: Mapping[str, bool]) -> list[str]:
    values = [f"{name}={str(on).lower()}" for name, on in switches.items()]
    return [f"{flag}={','.join(values)}"] if values else []
