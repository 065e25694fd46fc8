"""Credentials from commands: real small programs that print what a cloud provider's would."""

import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import uvloop

from podium.client import AccessError, load_access
from podium.client.credentials import Identity
from podium.client.exec_plugin import (
    ALWAYS,
    IF_AVAILABLE,
    NEVER,
    RENEW_EVERY,
    VERSIONS,
    ExecCommand,
    ExecCredentials,
    cluster_info,
)
from podium.framework.clock import ManualClock

SECRET = "s3cr3t-t0k3n"
V1, V1BETA1 = VERSIONS


@pytest.fixture
def plugin(tmp_path: Path) -> Callable[..., str]:
    """Writes a program that notes each run in `runs`, and returns its path."""

    def write(code: str) -> str:
        path = tmp_path / "plugin"
        note = f"open({str(tmp_path / 'runs')!r}, 'a').write('x')"
        path.write_text(f"#!{sys.executable} -S\nimport json, os, sys\n{note}\n{code}\n")
        path.chmod(0o755)
        return str(path)

    return write


def runs(tmp_path: Path) -> int:
    return len((tmp_path / "runs").read_text())


def printing(status: Any, *, version: str = V1, kind: str = "ExecCredential") -> str:
    return f"print({json.dumps({'apiVersion': version, 'kind': kind, 'status': status})!r})"


def ask(credentials: ExecCredentials, *, renew: bool = False) -> Identity:
    return asyncio.run(credentials.identity(0.0, renew=renew))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_token_is_taken_from_what_the_command_prints(plugin: Callable[[str], str], version: str) -> None:
    command = plugin(printing({"token": SECRET}, version=version))
    found = ask(ExecCredentials(ExecCommand(command, [], api_version=version), origin="o"))
    assert (found.authorization, found.certificate) == (f"Bearer {SECRET}", None)


def test_it_runs_on_uvloop_too(plugin: Callable[[str], str]) -> None:
    credentials = ExecCredentials(ExecCommand(plugin(printing({"token": SECRET})), []), origin="o")
    assert uvloop.run(credentials.identity(0.0)).authorization == f"Bearer {SECRET}"


def test_a_certificate_is_taken_with_its_key(plugin: Callable[[str], str]) -> None:
    command = plugin(printing({"clientCertificateData": "cert", "clientKeyData": "key"}))
    found = ask(ExecCredentials(ExecCommand(command, []), origin="o"))
    assert (found.authorization, found.certificate, found.key) == (None, b"cert", b"key")


def test_the_command_gets_its_arguments_environment_and_the_cluster(plugin: Callable[[str], str]) -> None:
    command = plugin(
        "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "seen = [sys.argv[1:], os.environ['AUDIENCE'], 'PATH' in os.environ, info, sys.stdin.read()]\n"
        "status = {'token': json.dumps(seen)}\n"
        f"print(json.dumps({{'apiVersion': {V1!r}, 'kind': 'ExecCredential', 'status': status}}))"
    )
    cluster = cluster_info(
        "https://api:6443",
        tls_server_name="name",
        insecure=False,
        authority=b"pem",
        proxy="",
        disable_compression=True,
        config={"audience": "x"},
    )
    credentials = ExecCredentials(
        ExecCommand(command, ["get", "token"], environment={"AUDIENCE": "x"}, interactive_mode=NEVER),
        origin="o",
        cluster=cluster,
    )
    seen = json.loads((ask(credentials).authorization or "").removeprefix("Bearer "))
    assert seen == [
        ["get", "token"],
        "x",
        True,
        {
            "kind": "ExecCredential",
            "apiVersion": V1,
            "spec": {
                "interactive": False,
                "cluster": {
                    "server": "https://api:6443",
                    "tls-server-name": "name",
                    "certificate-authority-data": "cGVt",
                    "disable-compression": True,
                    "config": {"audience": "x"},
                },
            },
        },
        "",
    ]


def test_without_an_end_it_runs_once_until_the_server_refuses(plugin: Callable[[str], str], tmp_path: Path) -> None:
    credentials = ExecCredentials(ExecCommand(plugin(printing({"token": SECRET})), []), origin="o")
    ask(credentials)
    ask(credentials)
    assert runs(tmp_path) == 1
    ask(credentials, renew=True)
    assert runs(tmp_path) == 2
    ask(credentials, renew=True)
    assert runs(tmp_path) == 2
    asyncio.run(credentials.identity(RENEW_EVERY, renew=True))
    assert runs(tmp_path) == 3


def test_it_runs_again_shortly_before_the_end(plugin: Callable[[str], str], tmp_path: Path) -> None:
    clock = ManualClock(1_700_000_000)
    command = plugin(printing({"token": SECRET, "expirationTimestamp": "2023-11-14T22:14:20Z"}))  # 60 s later
    credentials = ExecCredentials(ExecCommand(command, []), origin="o", clock=clock)
    ask(credentials)
    clock.advance(49)
    ask(credentials)
    assert runs(tmp_path) == 1
    clock.advance(2)
    ask(credentials)
    assert runs(tmp_path) == 2


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (f"print({SECRET!r})", "printed no JSON"),
        (f'print(\'{{"token": "{SECRET}\')', "printed no JSON"),
        ("", "printed no JSON"),
        (printing({"token": 5}), "cannot be used: Expected `str"),
        (printing({"token": SECRET, "expirationTimestamp": "soon"}), "cannot be used: Invalid RFC3339"),
        (
            printing({"token": SECRET}, version=V1BETA1),
            f"ExecCredential of {V1BETA1}: `apiVersion` of the user says {V1}",
        ),
        (printing({"token": SECRET}, kind="Pod"), "printed Pod of"),
        (printing({}), "no status with a token"),
        (printing(None), "no status with a token"),
        (printing({"clientKeyData": SECRET}), "printed a certificate without its key, or"),
        (f"print({SECRET!r}); sys.exit(3)", "failed with exit code 3"),
        ("while True: print('x' * 100_000)", "prints without end"),
    ],
)
def test_a_command_that_fails_is_told_in_one_sentence(plugin: Callable[[str], str], code: str, says: str) -> None:
    command = plugin(code)
    with pytest.raises(AccessError, match=says) as wrong:
        ask(ExecCredentials(ExecCommand(command, []), origin="/kube/config: user 'c'"))
    assert str(wrong.value).startswith(f"/kube/config: user 'c': the command {command} ")
    assert SECRET not in str(wrong.value)


def test_a_command_that_hangs_is_ended(plugin: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podium.client.exec_plugin.TIMEOUT", 0.2)
    with pytest.raises(AccessError, match=r"did not end within 0.2 s"):
        ask(ExecCredentials(ExecCommand(plugin("import time; time.sleep(60)"), []), origin="o"))


def test_what_a_hanging_command_started_is_ended_with_it(
    plugin: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever cuts it short: its own limit, or a request that gives up and a process that ends."""
    monkeypatch.setattr("podium.client.exec_plugin.TIMEOUT", 0.5)
    note = f"open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid))"
    hangs = f"import subprocess; child = subprocess.Popen(['sleep', '1000']); {note}; child.wait()"
    for patience in (0.2, 5.0):
        credentials = ExecCredentials(ExecCommand(plugin(hangs), [], interactive_mode=NEVER), origin="o")

        async def main(credentials: ExecCredentials = credentials, patience: float = patience) -> None:
            with suppress(TimeoutError, AccessError):
                await asyncio.wait_for(credentials.identity(0.0), patience)

        (tmp_path / "pid").write_text("")
        asyncio.run(main())
        child = (tmp_path / "pid").read_text()
        assert not child or not _runs(int(child))


def _runs(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


def test_a_hanging_command_ends_in_one_sentence(plugin: Callable[[str], str], tmp_path: Path) -> None:
    """As the user of a command line sees it: no traceback, nothing left, and the command is named."""
    script = (
        "import asyncio, sys\n"
        "from podium.client import Access, Client, ClientError\n"
        "from podium.client.exec_plugin import NEVER, ExecCommand, ExecCredentials\n"
        "async def main():\n"
        "    credentials = ExecCredentials(ExecCommand(sys.argv[1], interactive_mode=NEVER), origin='config')\n"
        "    async with Client(Access('https://127.0.0.1:9', credentials=credentials)) as client:\n"
        "        try:\n"
        "            await client.get('/x', timeout=0.5)\n"
        "        except ClientError as error:\n"
        "            print(error)\n"
        "asyncio.run(main())\n"
    )
    command = plugin("import subprocess; subprocess.run(['sleep', '1000'])")
    ran = subprocess.run(
        [sys.executable, "-W", "default", "-c", script, command],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert ran.stdout == f"config: the command {command} has not ended yet, and the request had no more time\n"
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_missing_command_is_told_with_its_hint() -> None:
    with pytest.raises(AccessError, match=r"the command no-such-plugin was not found: brew install it\\x1b\[1m"):
        ask(ExecCredentials(ExecCommand("no-such-plugin", [], install_hint="brew install it\x1b[1m"), origin="o"))
    with pytest.raises(AccessError, match="install it or correct `command`"):
        ask(ExecCredentials(ExecCommand("/no/such/plugin", []), origin="o"))


def test_a_file_that_is_no_program_is_told(tmp_path: Path) -> None:
    (tmp_path / "plugin").write_text("")
    with pytest.raises(AccessError, match="cannot run: Permission denied"):
        ask(ExecCredentials(ExecCommand(str(tmp_path / "plugin"), []), origin="o"))


def test_a_command_that_needs_a_terminal_is_not_run_without(plugin: Callable[[str], str], tmp_path: Path) -> None:
    with pytest.raises(AccessError, match="asks on the terminal"):
        ask(ExecCredentials(ExecCommand(plugin(printing({"token": SECRET})), [], interactive_mode=ALWAYS), origin="o"))
    assert not (tmp_path / "runs").exists()
    ask(
        ExecCredentials(ExecCommand(plugin(printing({"token": SECRET})), [], interactive_mode=IF_AVAILABLE), origin="o")
    )


@pytest.mark.parametrize("kubeconfig", ["config", "./config", "below/../config", "absolute"])
@pytest.mark.parametrize("command", ["./plugin", "bin/plugin", "bin/../plugin"])
def test_a_relative_command_is_found_from_the_folder_of_the_kubeconfig(
    plugin: Callable[[str], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    kubeconfig: str,
) -> None:
    """As kubectl finds it: from where the kubeconfig is, also where that was named by a relative path itself."""
    written = Path(plugin(printing({"token": SECRET})))
    (tmp_path / "bin").mkdir()
    (tmp_path / "below").mkdir()
    shutil.copy(written, tmp_path / "bin" / "plugin")
    user = {"exec": {"apiVersion": V1, "command": command, "interactiveMode": NEVER}}
    cluster = {"server": "https://127.0.0.1:9", "insecure-skip-tls-verify": True}
    content = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
    }
    (tmp_path / "config").write_text(json.dumps(content))
    monkeypatch.chdir(tmp_path)
    access = load_access(str(tmp_path / "config") if kubeconfig == "absolute" else kubeconfig)
    asyncio.run(access.refresh())
    assert access.headers == (("Authorization", f"Bearer {SECRET}"),)
