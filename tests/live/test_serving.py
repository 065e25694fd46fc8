"""The endpoints: what they say and how, under which certificate, and what becomes of wrong requests."""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podium.framework import ManualClock
from podium.live.metrics import Metrics
from podium.live.resource_metrics import resource_metrics
from podium.serving import ServingError
from podium.serving.certificate import CertificateError, PairOfFiles, SelfSigned, certificate_of
from podium.serving.tls import ServingTls
from tests.builders import make_pod
from tests.live.exposition import families_of
from tests.live.servings import CONFIGURATION, LOOPBACK, Reply, ask, served
from tests.testbed.certificates import CertificateAuthority


def get(path: str, **options: Any) -> Reply:
    async def main() -> Reply:
        async with served(**options) as address:
            return await ask(f"{address}{path}")

    return asyncio.run(main())


# Health


def well() -> None:
    return None


def broken() -> str:
    return "handlers are not fully synchronized"


CHECKS: dict[str, Callable[[], str | None]] = {"shutdown": well, "sched-handler-sync": well}
SICK = {**CHECKS, "sched-handler-sync": broken}


@pytest.mark.parametrize(
    ("path", "checks", "status", "text"),
    [
        ("/livez", CHECKS, 200, "ok"),
        ("/livez?verbose", CHECKS, 200, "[+]ping ok\nlivez check passed\n"),
        ("/healthz?verbose", CHECKS, 200, "[+]ping ok\nhealthz check passed\n"),
        ("/readyz", CHECKS, 200, "ok"),
        ("/readyz?verbose", CHECKS, 200, "[+]shutdown ok\n[+]sched-handler-sync ok\nreadyz check passed\n"),
        (
            "/readyz",
            SICK,
            500,
            "[+]shutdown ok\n[-]sched-handler-sync failed: reason withheld\nreadyz check failed\n",
        ),
        ("/readyz?exclude=sched-handler-sync", SICK, 200, "ok"),
        (
            "/readyz?verbose&exclude=shutdown",
            CHECKS,
            200,
            "[+]shutdown excluded: ok\n[+]sched-handler-sync ok\nreadyz check passed\n",
        ),
        (
            "/readyz?exclude=nope&verbose",
            CHECKS,
            200,
            "[+]shutdown ok\n[+]sched-handler-sync ok\n"
            'warn: some health checks cannot be excluded: no matches for "nope"\nreadyz check passed\n',
        ),
        ("/readyz/shutdown", SICK, 200, "ok"),
        ("/readyz/sched-handler-sync", SICK, 500, "internal server error: handlers are not fully synchronized\n"),
        ("/readyz/nope", CHECKS, 404, "404 page not found\n"),
        ("/healthz/ping", CHECKS, 200, "ok"),
    ],
)
def test_health_is_told_as_kubernetes_tells_it(path: str, checks: Any, status: int, text: str) -> None:
    reply = get(path, readyz=checks)
    assert (reply.status, reply.text) == (status, text)
    assert reply.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert reply.headers["Cache-Control"] == "no-cache, private"
    assert reply.headers["Server"] == "podium"


def test_healthz_asks_about_the_lease_where_there_is_one() -> None:
    lost = {"leaderElection": lambda: "failed election to renew leadership on lease podium"}
    reply = get("/healthz", healthz=lost)
    assert (reply.status, reply.text) == (500, "[-]leaderElection failed: reason withheld\nhealthz check failed\n")


def test_a_check_that_raises_counts_as_failed() -> None:
    def raises() -> None:
        raise ValueError("no")

    assert get("/readyz", readyz={"odd": raises}).status == 500


# The rest


def test_metrics_are_shown_in_the_format_of_prometheus() -> None:
    reply = get("/metrics", metrics=Metrics(ManualClock(), now=lambda: 0.0))
    assert reply.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert "scheduler_pod_scheduling_attempts" in families_of(reply.text)


def test_slis_tell_how_health_checks_went() -> None:
    async def main() -> str:
        async with served(readyz=SICK) as address:
            await ask(f"{address}/readyz")
            await ask(f"{address}/readyz/shutdown")
            return (await ask(f"{address}/metrics/slis")).text

    families = families_of(asyncio.run(main()))
    latest, counted = families["kubernetes_healthcheck"], families["kubernetes_healthchecks_total"]
    assert latest.value(type="readyz", name="shutdown") == 1
    assert latest.value(type="readyz", name="sched-handler-sync") == 0
    assert counted.value(type="readyz", name="shutdown", status="success") == 2
    assert counted.value(name="sched-handler-sync", status="error") == 1
    assert "process_start_time_seconds" in families


def test_the_configuration_in_force_is_shown() -> None:
    reply = get("/configz")
    assert json.loads(reply.text) == {"componentconfig": CONFIGURATION}
    assert reply.headers["Content-Type"].startswith("application/json")


@pytest.mark.parametrize("path", ["/", "/nope", "/metrics/", "/metrics/nope", "/readyz/a/b"])
def test_other_paths_are_not_found(path: str) -> None:
    reply = get(path)
    assert (reply.status, reply.text) == (404, "404 page not found\n")


def test_other_methods_are_not_allowed() -> None:
    async def main() -> Reply:
        async with served() as address:
            return await ask(f"{address}/metrics", method="POST")

    assert asyncio.run(main()).status == 405


def test_a_port_that_is_taken_is_named() -> None:
    async def main() -> None:
        async with served() as address:
            port = int(address.rpartition(":")[2])
            with pytest.raises(ServingError, match=rf"--bind-address 127\.0\.0\.1 with --secure-port {port} cannot be"):
                async with served(port=port):
                    pass

    asyncio.run(main())


# What pods request


def test_requests_and_limits_of_pods_are_shown_with_their_units() -> None:
    containers = [
        {
            "name": "c",
            "resources": {
                "requests": {
                    "cpu": "1500m",
                    "memory": "1Gi",
                    "hugepages-2Mi": "4Mi",
                    "example.com/gpu": 1,
                    "storage": 0,
                },
                "limits": {"cpu": 2, "attachable-volumes-csi": 3},
            },
        }
    ]
    pod = make_pod(spec={"containers": containers, "overhead": {"cpu": "250m", "memory": "1Ki"}, "nodeName": "n1"})
    ended = make_pod("ended", requests={"cpu": 1}, node="n1", status={"phase": "Succeeded"})
    waiting = make_pod("waiting", requests={"cpu": 1}, priority=7)

    async def main() -> str:
        pods = [pod, ended, waiting]
        async with served(resources=lambda: resource_metrics(lambda: pods, lambda: True)) as address:
            return (await ask(f"{address}/metrics/resources")).text

    families = families_of(asyncio.run(main()))

    def amounts(name: str, pod: str) -> dict[tuple[str, str], float]:
        values = families[name].values
        found = [(dict(labels), value) for labels, value in values.items()]
        return {(has["resource"], has["unit"]): value for has, value in found if has["pod"] == pod}

    assert amounts("kube_pod_resource_request", "p1") == {
        ("cpu", "cores"): 1.75,
        ("memory", "bytes"): 2**30 + 1024,
        ("hugepages-2Mi", "bytes"): 4 * 2**20,
        ("example.com/gpu", ""): 1,
    }
    assert amounts("kube_pod_resource_limit", "p1") == {
        ("cpu", "cores"): 2.25,
        ("attachable-volumes-csi", "integer"): 3,
    }
    assert amounts("kube_pod_resource_request", "ended") == {}
    requested = families["kube_pod_resource_request"].values
    (waiting_labels,) = (dict(labels) for labels in requested if ("pod", "waiting") in labels)
    assert (waiting_labels["node"], waiting_labels["priority"]) == ("", "7")
    assert waiting_labels["scheduler"] == "default-scheduler"


def test_only_the_leader_shows_what_pods_request() -> None:
    reply = get("/metrics/resources", resources=lambda: resource_metrics(lambda: [make_pod()], lambda: False))
    assert (reply.status, reply.text) == (200, "")


# Certificates


def test_without_files_a_certificate_is_made_for_the_names_given() -> None:
    tls = ServingTls(SelfSigned("localhost", LOOPBACK), lambda: b"", lambda: 0.0, print)

    async def main() -> bytes:
        async with served(tls=tls.context) as address:
            assert (await ask(f"{address}/healthz")).text == "ok"
            return await shown_certificate(address)

    certificate = asyncio.run(main())
    text = subprocess.run(
        ["openssl", "x509", "-inform", "der", "-noout", "-text"], input=certificate, capture_output=True, check=True
    ).stdout.decode()
    assert "DNS:localhost, IP Address:127.0.0.1" in text
    assert "CN = podium" in text


def test_replaced_files_are_shown_to_the_next_client_and_broken_ones_to_nobody(tmp_path: Path) -> None:
    authority = CertificateAuthority(tmp_path)
    pair = authority.issue("server", hosts=[LOOPBACK])
    reports: list[str] = []
    time = 0.0
    tls = ServingTls(PairOfFiles(pair.certificate, pair.key), lambda: b"", lambda: time, reports.append)

    async def main() -> list[bytes]:
        nonlocal time
        async with served(tls=tls.context) as address:
            seen = [await shown_certificate(address)]
            authority.issue("server", hosts=[LOOPBACK])
            time += 100
            seen.append(await shown_certificate(address))
            pair.certificate.write_text("nonsense")
            time += 100
            seen += [await shown_certificate(address), await shown_certificate(address)]
            pair.certificate.unlink()
            return [*seen, await shown_certificate(address)]

    first, second, *later = asyncio.run(main())
    assert first != second
    assert later == [second] * 3
    assert "is not PEM" in reports[0]
    assert len(reports) == 2, "said once, and once more that the file is gone"


@pytest.mark.parametrize(
    ("certificate", "key", "complaint"),
    [
        ("a.crt", "", "--tls-cert-file is given without --tls-private-key-file: give both, or neither"),
        ("", "a.key", "--tls-private-key-file is given without --tls-cert-file: give both, or neither"),
    ],
)
def test_half_a_pair_is_refused(certificate: str, key: str, complaint: str) -> None:
    with pytest.raises(CertificateError, match=complaint):
        certificate_of(certificate, key)


def test_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    source = certificate_of(str(tmp_path / "a.crt"), str(tmp_path / "a.key"))
    with pytest.raises(CertificateError, match=r"a\.crt cannot be read: No such file"):
        ServingTls(source, lambda: b"", lambda: 0.0, print)


def test_a_folder_keeps_the_certificate_that_was_made(tmp_path: Path) -> None:
    folder = tmp_path / "certificates"
    made = certificate_of(folder=str(folder)).read(0.0)
    assert (folder / "podium.key").stat().st_mode & 0o777 == 0o600
    assert certificate_of(folder=str(folder)).read(0.0) == made


def test_without_openssl_files_must_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(CertificateError, match=r"there is no openssl program .* give --tls-cert-file"):
        certificate_of()


async def shown_certificate(address: str) -> bytes:
    """The certificate a server shows, as DER."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    _reader, writer = await asyncio.open_connection(LOOPBACK, int(address.rpartition(":")[2]), ssl=context)
    certificate: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    await writer.wait_closed()
    return certificate
