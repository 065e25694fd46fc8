"""Runs `podium` as a process of its own, forked from one that has imported it: in hundredths of a second, not in one.

What a command prints, what it is limited by and how it ends are those of a process; only the interpreter's start and
the imports are shared. Tests of exactly these, and of signals, start `python -m podium`.

    forked("explain", "shop/web", cwd=folder).stdout
    folder_with_podium()        # a folder for PATH, whose `podium` is run so too: for shells
"""

from __future__ import annotations

import array
import atexit
import contextlib
import functools
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

HERE: Final = Path(__file__)
SHIM: Final = f"""#!{sys.executable} -IS
import array, json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect(os.path.join(os.path.dirname(os.path.abspath(__file__)), "socket"))
    asked = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ), 0]).encode()
    fds = array.array("i", [0, 1, 2]).tobytes()
    server.sendmsg([len(asked).to_bytes(4, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
    server.sendall(asked)
    sys.exit(int.from_bytes(server.recv(4), "big"))
"""
WARM_UP: Final = (
    ("explain", "shop/checkout", "--from", "src/podium/samples/cluster.yaml"),
    ("check", "examples/config/coscheduling.yaml"),
    ("simulate", "examples/simulate/failing-nodes.yaml", "--check"),
)
"""Commands that import what most commands do; run once before any process is forked."""


def forked(
    *arguments: str,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    memory: int = 0,
    timeout: float = 120.0,
) -> subprocess.CompletedProcess[str]:
    """`podium ARGUMENTS`, run to its end; `memory` limits the bytes of its address space."""
    environment = {**(os.environ if env is None else env), "PODIUM_FORKED_MEMORY": str(memory)}
    program = folder_with_podium() / "podium"
    return subprocess.run(
        [program, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=timeout
    )


@functools.cache
def folder_with_podium() -> Path:
    """A folder that holds a `podium` which is forked from a server of this process; both go with it."""
    folder = tempfile.TemporaryDirectory(prefix="podium-forked-")
    program = Path(folder.name) / "podium"
    program.write_text(SHIM)
    program.chmod(0o755)
    server = subprocess.Popen([sys.executable, HERE, folder.name], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    atexit.register(_end, server, folder)
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n"
    return program.parent


def _end(server: subprocess.Popen[bytes], folder: tempfile.TemporaryDirectory[str]) -> None:
    server.kill()
    server.communicate()
    folder.cleanup()


def serve(folder: str) -> NoReturn:
    """Answers each connection with a process: its arguments, folder, environment and streams come over the socket."""
    from podium.cli import main

    for arguments in WARM_UP:
        with (
            contextlib.suppress(SystemExit),
            Path(os.devnull).open("w") as nowhere,
            contextlib.redirect_stdout(nowhere),
        ):
            os.chdir(HERE.parents[2])
            main(arguments)
    os.chdir("/")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{folder}/socket")
        listener.listen(16)
        print("ready", flush=True)
        while True:
            connection, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                if os.fork() == 0:
                    _answer(connection)
                os._exit(0)  # the one that answers is nobody's child: no one has to wait for it here
            connection.close()
            os.wait()


def _answer(connection: socket.socket) -> NoReturn:
    head, ancillary, _, _ = connection.recvmsg(4, socket.CMSG_SPACE(3 * 4))
    fds = array.array("i")
    fds.frombytes(ancillary[0][2])
    length, asked = int.from_bytes(head, "big"), b""
    while len(asked) < length:
        asked += connection.recv(length - len(asked))
    process = os.fork()
    if process == 0:
        connection.close()
        _run(json.loads(asked), list(fds))
    _, status = os.waitpid(process, 0)
    code = os.waitstatus_to_exitcode(status)
    connection.sendall((code if code >= 0 else 128 - code).to_bytes(4, "big"))
    os._exit(0)


def _run(asked: list[Any], fds: list[int]) -> NoReturn:
    from podium.cli import main

    arguments, folder, environment, _ = asked
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
        os.close(fd)
    os.chdir(folder)
    memory = int(environment.pop("PODIUM_FORKED_MEMORY", "0"))
    os.environ.clear()
    os.environ.update(environment)
    if memory:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    sys.path[:0] = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.argv = ["podium", *arguments]
    code: Any = 1
    try:
        main()
    except SystemExit as ended:
        code = ended.code
        if isinstance(code, str):
            print(code, file=sys.stderr)
            code = 1
    except BaseException:  # whatever a process would have died of is printed and ends it
        traceback.print_exc()
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.flush()
    os._exit(0 if code is None else int(code))


if __name__ == "__main__":
    del sys.path[0]  # this file's folder
    serve(sys.argv[1])
