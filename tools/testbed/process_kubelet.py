"""A small kubelet: runs the command of each pod on its node as a process of this machine, and writes the pod's status.

No images and no namespaces: the first container's command runs with the programs of the interpreter's environment. A
claim is a folder of this machine, whose mount path is replaced by that folder in the arguments. Variables come from the
pod and from the Secrets it names.
"""

import base64
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tools.testbed.apiclient import ApiClient, ApiError, Object
from tools.testbed.objects import make_node

LAST_WORDS = 2000
"""Characters of a log that become a container's message."""


class ProcessKubelet:
    """One node; a context manager that runs its pods from a thread."""

    def __init__(
        self, client: ApiClient, name: str, *, cpu: str = "4", claims: Mapping[str, Path] | None = None
    ) -> None:
        self.name = name
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        """Of the pods that run, by their names."""
        self.started: list[str] = []
        self.logs = Path(tempfile.mkdtemp(prefix="podium-kubelet-"))
        self._client = client
        self._cpu = cpu
        self._claims = dict(claims or {})
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._serve, name=f"kubelet {name}", daemon=True)

    def __enter__(self) -> "ProcessKubelet":
        self._client.create(make_node(self.name, cpu=self._cpu))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()
        for process in self.processes.values():
            process.kill()
            process.wait()

    def kill(self, pod: str) -> None:
        """End a pod's process at once, as the kernel does when memory runs out."""
        self.processes[pod].send_signal(signal.SIGKILL)

    def evict(self, pod: str, namespace: str = "default") -> None:
        """Take a pod's node from it, as a cloud takes a spot machine back: the pod fails with DisruptionTarget."""
        self.kill(pod)
        found = self._client.get("pods", pod, namespace)
        condition = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}
        conditions = [*found["status"].get("conditions", ()), condition]
        self._client.set_status({**found, "status": {**found["status"], "conditions": conditions}})

    def _serve(self) -> None:
        while not self._stopped.wait(0.1):
            for pod in self._client.list("pods"):
                if pod["spec"].get("nodeName") == self.name:
                    try:
                        self._sync(pod)
                    except ApiError as error:
                        if error.code not in (404, 409):  # it is gone, or was written meanwhile: the next round sees
                            raise

    def _sync(self, pod: Object) -> None:
        name = pod["metadata"]["name"]
        process = self.processes.get(name)
        if pod["metadata"].get("deletionTimestamp"):
            if process is not None and process.poll() is None:
                process.terminate()
                return
            self.processes.pop(name, None)
            self._client.delete("pods", name, pod["metadata"]["namespace"])
        elif process is None:
            if pod["status"].get("phase", "Pending") == "Pending":
                self.processes[name] = self._start(pod)
                self.started.append(name)
                self._write(pod, "Running", {"running": {}})
        elif process.poll() is not None and pod["status"]["phase"] == "Running":
            code = process.returncode
            code = 128 - code if code < 0 else code
            words = (self.logs / f"{name}.log").read_text(errors="replace")[-LAST_WORDS:] if code else ""
            ended = {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed", "message": words}}
            self._write(pod, "Failed" if code else "Succeeded", ended)

    def _write(self, pod: Object, phase: str, state: dict[str, Any]) -> None:
        container = pod["spec"]["containers"][0]
        status = {"name": container["name"], "image": container["image"], "imageID": "", "state": state}
        statuses = [{**status, "ready": phase == "Running", "restartCount": 0}]
        written = {**pod["status"], "phase": phase, "containerStatuses": statuses}
        self._client.set_status({"apiVersion": "v1", "kind": "Pod", **pod, "status": written})

    def _start(self, pod: Object) -> "subprocess.Popen[bytes]":
        container = pod["spec"]["containers"][0]
        arguments = [self._on_this_machine(text, pod) for text in [*container["command"], *container.get("args", ())]]
        environment = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", **self._variables(pod)}
        with (self.logs / f"{pod['metadata']['name']}.log").open("wb") as log:
            return subprocess.Popen(arguments, env=environment, stdout=log, stderr=subprocess.STDOUT, cwd="/")

    def _on_this_machine(self, text: str, pod: Object) -> str:
        claims = {
            volume["name"]: volume["persistentVolumeClaim"]["claimName"]
            for volume in pod["spec"].get("volumes", ())
            if "persistentVolumeClaim" in volume
        }
        for mount in pod["spec"]["containers"][0].get("volumeMounts", ()):
            if mount["name"] in claims and text == mount["mountPath"]:
                return str(self._claims[claims[mount["name"]]] / mount.get("subPath", ""))
        return text

    def _variables(self, pod: Object) -> dict[str, str]:
        container = pod["spec"]["containers"][0]
        found: dict[str, str] = {}
        for source in container.get("envFrom", ()):
            secret = self._client.get("secrets", source["secretRef"]["name"], pod["metadata"]["namespace"])
            found |= {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}
        for variable in container.get("env", ()):
            field = variable.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath", "")
            annotation = field.removeprefix("metadata.annotations['").removesuffix("']")
            labelled = field.removeprefix("metadata.labels['").removesuffix("']")
            metadata = pod["metadata"]
            read = metadata.get("annotations", {}).get(annotation) or metadata.get("labels", {}).get(labelled)
            found[variable["name"]] = variable.get("value") or read or ""
        return found
