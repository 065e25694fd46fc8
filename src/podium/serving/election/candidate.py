"""Builds a candidate of an election from its settings: one process that would lead."""

from __future__ import annotations

import uuid

from podium.client import Client
from podium.config.types import LeaderElection
from podium.kube.printable import shortened
from podium.serving.election.election import Election
from podium.serving.environment import ProcessEnvironment
from podium.serving.events.recorder import EventRecorder
from podium.serving.log import LOG

LONGEST_NAME = 300


def candidate(
    settings: LeaderElection,
    client: Client,
    recorder: EventRecorder,
    environment: ProcessEnvironment,
    controller: str,
    *,
    server_in_process: bool = False,
) -> Election:
    """Its identity is the host name and a number of its own; `controller` is who its events are from."""
    lease = f"lease {settings.resource_namespace}/{settings.resource_name}"
    identity = f"{environment.hostname}_{uuid.UUID(int=environment.rng.getrandbits(128), version=4)}"

    def say_who_leads(leader: str) -> None:
        if leader == identity:
            LOG.info("this process leads: it holds %s", lease)
        elif leader:
            LOG.info("%s is held by %s; waiting for it", lease, shortened(leader, LONGEST_NAME))
        else:
            LOG.info("%s is free", lease)

    return Election(
        client,
        namespace=settings.resource_namespace,
        name=settings.resource_name,
        identity=identity,
        lease_duration=settings.lease_duration.seconds,
        renew_deadline=settings.renew_deadline.seconds,
        retry_period=settings.retry_period.seconds,
        clock=environment.clock,
        rng=environment.rng,
        report=LOG.info,
        server_in_process=server_in_process,
        on_leader=say_who_leads,
        on_event=lambda lease, note: recorder.record_election(lease, note, controller),
    )
