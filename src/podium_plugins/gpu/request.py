"""Reads what a pod asks of GPUs, and which devices it was given, from its annotations.

    alibabacloud.com/gpu-milli        thousandths of each GPU, 0–1000; 1000 where only the count is given
    alibabacloud.com/gpu-count        number of GPUs; 1 where only the share is given
    alibabacloud.com/gpu-card-model   models that will do, joined by "|"; missing or empty: any
    alibabacloud.com/gpu-index        the devices it was given, joined by "-", written by GpuShare

A share below 1000 is of one GPU: a pod cannot ask for half of each of two. What is not plainly a number in its range is
an error, never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from podium import read_whole

MILLI = "alibabacloud.com/gpu-milli"
COUNT = "alibabacloud.com/gpu-count"
MODEL = "alibabacloud.com/gpu-card-model"
INDEX = "alibabacloud.com/gpu-index"

WHOLE = 1000
"""Thousandths of one device."""
MOST_DEVICES = 64
"""No node has more; larger numbers are taken for mistakes."""

_INDEX = re.compile(r"[0-9]{1,2}(?:-[0-9]{1,2})*")


class GpuRequest(NamedTuple):
    """A number of GPUs with `milli` thousandths of each; `models` that will do, sorted, none for any."""

    gpus: int
    milli: int
    models: tuple[str, ...] = ()

    @property
    def sharing(self) -> bool:
        """Whether it leaves part of its GPU to others."""
        return 0 < self.milli < WHOLE

    @property
    def size(self) -> int:
        """The number of whole GPUs; 0 for a share of one, and for none."""
        return self.gpus if self.milli == WHOLE else 0

    @property
    def total(self) -> int:
        return self.gpus * self.milli


NO_GPU = GpuRequest(0, 0)


class GpuRequestError(ValueError):
    """An annotation that says nothing usable; the text names it and what to write."""


def read_request(annotations: Mapping[str, str]) -> GpuRequest:
    """What a pod's annotations ask for; raises GpuRequestError.

    >>> read_request({MILLI: "250", MODEL: "T4|P100"})
    GpuRequest(gpus=1, milli=250, models=('P100', 'T4'))
    >>> read_request({COUNT: "2"}).total
    2000
    """
    if MILLI not in annotations and COUNT not in annotations:
        return NO_GPU
    milli = _number(annotations, MILLI, WHOLE, WHOLE)
    count = _number(annotations, COUNT, 1, MOST_DEVICES)
    if not milli or not count:
        return NO_GPU
    if count > 1 and milli < WHOLE:
        raise GpuRequestError(f"annotation {MILLI} is {milli} for {count} GPUs; write 1000, or a {COUNT} of 1")
    models = {model.strip() for model in annotations.get(MODEL, "").split("|")}
    return GpuRequest(count, milli, tuple(sorted(models - {""})))


def _number(annotations: Mapping[str, str], key: str, default: int, most: int) -> int:
    text = annotations.get(key)
    if text is None:
        return default
    number = read_whole(text)
    if number is None or not 0 <= number <= most:
        raise GpuRequestError(f'annotation {key} is "{text[:40]}"; write a whole number from 0 to {most}')
    return number


def read_devices(annotations: Mapping[str, str], request: GpuRequest) -> tuple[int, ...] | None:
    """The devices a pod says it was given; None where it does not say, or not as many as it asks for.

    >>> read_devices({INDEX: "3-0"}, GpuRequest(2, 1000))
    (0, 3)
    """
    text = annotations.get(INDEX)
    if text is None or not _INDEX.fullmatch(text):
        return None
    devices = tuple(sorted({int(part) for part in text.split("-")}))
    usable = len(devices) == request.gpus and devices[-1] < MOST_DEVICES
    return devices if usable else None


def write_devices(devices: Sequence[int]) -> str:
    """
    >>> write_devices((0, 3))
    '0-3'
    """
    return "-".join(map(str, devices))
