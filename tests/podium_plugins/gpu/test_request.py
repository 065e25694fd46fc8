from __future__ import annotations

import pytest

from podium_plugins.gpu.request import (
    COUNT,
    INDEX,
    MILLI,
    MODEL,
    NO_GPU,
    GpuRequest,
    GpuRequestError,
    read_devices,
    read_request,
    write_devices,
)


@pytest.mark.parametrize(
    ("annotations", "request_"),
    [
        ({}, NO_GPU),
        ({MODEL: "T4"}, NO_GPU),
        ({MILLI: "0"}, NO_GPU),
        ({COUNT: "0", MILLI: "500"}, NO_GPU),
        ({MILLI: "500"}, GpuRequest(1, 500)),
        ({COUNT: "4"}, GpuRequest(4, 1000)),
        ({MILLI: "1000", COUNT: "8"}, GpuRequest(8, 1000)),
        ({MILLI: "250", COUNT: "1", MODEL: "V100M16|V100M32|V100M16"}, GpuRequest(1, 250, ("V100M16", "V100M32"))),
        ({MILLI: "250", MODEL: " | "}, GpuRequest(1, 250)),
    ],
)
def test_a_request_is_read_from_annotations(annotations: dict[str, str], request_: GpuRequest) -> None:
    assert read_request(annotations) == request_


@pytest.mark.parametrize(
    ("annotations", "problem"),
    [
        ({MILLI: "half"}, 'annotation alibabacloud.com/gpu-milli is "half"; write a whole number from 0 to 1000'),
        ({MILLI: "1001"}, 'annotation alibabacloud.com/gpu-milli is "1001"; write a whole number from 0 to 1000'),
        ({MILLI: "-1"}, 'annotation alibabacloud.com/gpu-milli is "-1"; write a whole number from 0 to 1000'),
        ({MILLI: "0.5"}, 'annotation alibabacloud.com/gpu-milli is "0.5"; write a whole number from 0 to 1000'),
        ({COUNT: "65"}, 'annotation alibabacloud.com/gpu-count is "65"; write a whole number from 0 to 64'),
        (
            {COUNT: "9" * 5000},
            f'annotation {COUNT} is "{"9" * 40}"; write a whole number from 0 to 64',
        ),
        (
            {MILLI: "500", COUNT: "2"},
            "annotation alibabacloud.com/gpu-milli is 500 for 2 GPUs; write 1000, or a alibabacloud.com/gpu-count of 1",
        ),
    ],
)
def test_what_cannot_be_read_is_said(annotations: dict[str, str], problem: str) -> None:
    with pytest.raises(GpuRequestError) as error:
        read_request(annotations)
    assert str(error.value) == problem


@pytest.mark.parametrize(
    ("index", "devices"),
    [("0-3", (0, 3)), ("3-0", (0, 3)), ("63-1", (1, 63))],
)
def test_devices_are_read_in_any_order(index: str, devices: tuple[int, ...]) -> None:
    assert read_devices({INDEX: index}, GpuRequest(2, 1000)) == devices


@pytest.mark.parametrize("index", ["", "0", "0-0", "0-1-2", "a-b", "-1-2", "0--1", "0-64", "0-1 ", "0-1\n", "0,1"])
def test_devices_that_cannot_be_those_of_the_request_are_not_read(index: str) -> None:
    assert read_devices({INDEX: index}, GpuRequest(2, 1000)) is None


def test_what_is_written_can_be_read() -> None:
    assert read_devices({INDEX: write_devices((0, 2, 11))}, GpuRequest(3, 1000)) == (0, 2, 11)
