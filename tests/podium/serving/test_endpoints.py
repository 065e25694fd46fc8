"""The endpoints: what they say and how, and what becomes of wrong requests."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from podium.framework import ManualClock
from podium.run.metrics import Metrics, resource_metrics
from podium.serving import ServingError
from tests.podium.run.exposition import families_of
from tests.podium.serving.servings import CONFIGURATION, Reply, ask, served
from tools.kit.builders import make_pod


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


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ", b"GET /healthz"])
def test_a_connection_that_does_not_bring_a_request_in_time_is_closed(sent: bytes) -> None:
    """Hundreds of them would else stay for ever; one that trickles is no better than a silent one."""

    async def main() -> float:
        async with served(idle_timeout=0.5) as address:
            host, _, port = address.removeprefix("http://").partition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            began = time.monotonic()
            writer.write(sent)
            try:
                async with asyncio.timeout(5):
                    while not reader.at_eof():
                        writer.write(sent[:1] and b"x")
                        with contextlib.suppress(TimeoutError):
                            await asyncio.wait_for(reader.read(1), 0.1)
            except ConnectionError:
                pass  # closed while a byte was on its way
            finally:
                writer.close()
            return time.monotonic() - began

    assert 0.4 < asyncio.run(main()) < 3


def test_an_idle_connection_is_closed_and_a_busy_one_is_not() -> None:
    async def main() -> int:
        async with served(idle_timeout=0.5) as address:
            host, _, port = address.removeprefix("http://").partition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            answers = 0
            for _ in range(8):  # longer than the limit, with something to do all the time
                writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
                answers += (await reader.readuntil(b"\r\n\r\nok")).startswith(b"HTTP/1.1 200")
                await asyncio.sleep(0.1)
            async with asyncio.timeout(5):
                assert await reader.read() == b""
            writer.close()
            return answers

    assert asyncio.run(main()) == 8


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


# Pages for people who look into a process


FLAGS = {"secure-port": "10259", "config": ""}


def get_as(path: str, accept: str) -> Reply:
    async def main() -> Reply:
        async with served(flags=FLAGS) as address:
            return await ask(f"{address}{path}", headers={"Accept": accept})

    return asyncio.run(main())


@pytest.mark.parametrize("accept", ["*/*", "text/plain", "application/xml, text/plain;q=0.5", ""])
def test_flags_and_status_are_text_for_people(accept: str) -> None:
    reply = get_as("/flagz", accept)
    assert (reply.status, reply.headers["Content-Type"]) == (200, "text/plain; charset=utf-8")
    assert reply.text.startswith("\npodium flagz\nWarning: ")
    assert reply.text.endswith("\n\nconfig=\nsecure-port=10259\n")
    status = get_as("/statusz", accept).text
    assert status.startswith("\npodium statusz\nWarning: ")
    assert "\nUp: 0 hr 00 min 0" in status
    assert "Paths: /configz /flagz /healthz /livez /metrics /readyz\n" in status


@pytest.mark.parametrize("version", ["v1beta1", "v1alpha1"])
def test_flags_and_status_are_objects_for_programs(version: str) -> None:
    reply = get_as("/flagz", f"application/json;as=Flagz;v={version};g=config.k8s.io")
    head = {"apiVersion": f"config.k8s.io/{version}", "metadata": {"name": "podium"}}
    assert json.loads(reply.text) == {"kind": "Flagz", **head, "flags": FLAGS}
    assert ("Warning" in reply.headers) == (version == "v1alpha1")
    reply = get_as("/statusz", f"text/html, application/yaml;as=Statusz;v={version};g=config.k8s.io")
    status = yaml.safe_load(reply.text)
    assert {name: status[name] for name in head} == head
    assert status["kind"] == "Statusz"
    assert status["paths"] == ["/configz", "/flagz", "/healthz", "/livez", "/metrics", "/readyz"]


@pytest.mark.parametrize(
    "accept",
    ["application/json", "application/json;as=Statusz;v=v1;g=config.k8s.io", "text/html", "text/plain;as=Statusz"],
)
def test_other_forms_of_status_are_not_acceptable(accept: str) -> None:
    reply = get_as("/statusz", accept)
    assert reply.status == 406
    assert json.loads(reply.text)["reason"] == "NotAcceptable"


def test_without_flags_there_is_no_page_of_them() -> None:
    assert get("/flagz").status == 404
