"""Seconds of a device's work: two streams at once count once, and nobody waits for an event."""

from __future__ import annotations

import itertools

import pytest

from studio.backends.batching.device_timer import DeviceTimer
from studio.backends.batching.line_runner import SequentialRunner


class Device:
    """A device on which every event has its time, in ms, once it was passed."""

    def __init__(self) -> None:
        self.now_ms = 0.0
        self.passed_ms = float("inf")
        self.made = 0

    def event(self) -> Event:
        self.made += 1
        return Event(self)


class Event:
    def __init__(self, device: Device) -> None:
        self._device = device

    def record(self) -> None:
        self.at_ms = self._device.now_ms

    def query(self) -> bool:
        return self.at_ms <= self._device.passed_ms

    def elapsed_time(self, later: Event) -> float:
        return later.at_ms - self.at_ms


@pytest.fixture
def device() -> Device:
    return Device()


@pytest.fixture
def timer(device: Device) -> DeviceTimer:
    return DeviceTimer(device.event)


def test_steps_count_and_pauses_do_not(device: Device, timer: DeviceTimer) -> None:
    for _ in range(5_000):
        with timer.span():
            device.now_ms += 3.0
        device.now_ms += 7.0
    assert timer.seconds() == pytest.approx(15.0)


def test_two_streams_at_once_count_once(device: Device, timer: DeviceTimer) -> None:
    with timer.span():
        device.now_ms = 50.0
        for _ in range(10):
            with timer.span():
                device.now_ms += 5.0
        device.now_ms = 200.0
    device.now_ms = 300.0
    with timer.span():
        device.now_ms = 340.0
    assert timer.seconds() == pytest.approx(0.24)


def test_what_the_device_has_not_passed_is_not_waited_for(
    device: Device, timer: DeviceTimer
) -> None:
    device.passed_ms = 25.0
    for _ in range(4):
        with timer.span():
            device.now_ms += 10.0
    assert timer.seconds() == pytest.approx(0.02)
    device.passed_ms = 40.0
    assert timer.seconds() == pytest.approx(0.04)


def test_a_step_that_fails_counts(device: Device, timer: DeviceTimer) -> None:
    def fail() -> None:
        with timer.span():
            device.now_ms += 4.0
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    assert timer.seconds() == pytest.approx(0.004)


def test_a_line_counts_while_it_is_made_and_not_while_it_is_read(
    device: Device, timer: DeviceTimer
) -> None:
    def make():
        for number in range(3):
            device.now_ms += 2.0
            yield number

    for _ in timer.measure(make()):
        device.now_ms += 100.0
    assert timer.seconds() == pytest.approx(0.006)
    assert list(itertools.islice(timer.measure(make()), 2)) == [0, 1]


def test_only_a_card_has_such_a_clock() -> None:
    assert SequentialRunner(lambda _: iter(()), title="Alone").health().busy_s is None
    assert SequentialRunner(lambda _: iter(()), title="Alone", device="cuda").health().busy_s == 0.0
