"""Monitor that learns the state of a cloud and its devices (paper 4, Sec. 3.2).

The monitor uses moving averages and a learned delay function g.

>>> from specopt.instances.prompt_chunking.workload import FIGURE_1
>>> link = {"uplink_bytes_per_second": 7.5e6, "downlink_bytes_per_second": 12.5e6}
>>> monitor = PromptMonitor(FIGURE_1, **link)
>>> monitor.observe_batch(tokens=10, seconds=0.027)
>>> monitor.observe_device("phone", uplink_bytes_per_second=6e6, draft_seconds=0.008)
>>> problem = monitor.problem("phone", 351, bytes_per_token=8192.0, pipeline_length=4)
>>> problem.background_tokens, problem.uplink_bytes_per_second, problem.downlink_bytes_per_second
(10.0, 6000000.0, 12500000.0)
>>> monitor.parallel_steps("phone", 3, bytes_per_token=8192.0)
4
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from statistics import fmean
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np

from specopt.models.arguments import LARGEST, Key, key_of, number, one_of
from specopt.models.device_speculation import parallel_steps
from specopt.models.errors import InvalidInput
from specopt.models.fields import SMALLEST, Amount, Floats, describe, refuse_denormal
from specopt.models.pass_time import CloudDelay
from specopt.models.prompt_chunking.problem import PromptChunkingProblem
from specopt.online.average import Average
from specopt.online.base import (
    Fixed,
    Online,
    SavedTotals,
    distinct,
    locked,
    normal,
    restoring,
)

KNOTS = (0.0, 16.0, 64.0, 256.0, 1024.0, 4096.0)
"""Default knots of the piecewise linear delay g, in tokens."""

_Field = Literal["uplink_bytes_per_second", "downlink_bytes_per_second", "draft_seconds"]
_FIELDS = get_args(_Field)
_Pinned = Literal["observed", "smoothed"]
_NOTHING: dict[_Field, Average] = dict.fromkeys(_FIELDS, Average())


class _State(SavedTotals):
    smoothing: float
    pinned: _Pinned
    outlier_limit: float | None
    given: dict[_Field, float]
    tokens: list[Amount]
    seconds: list[Amount] | None
    batches: Average
    errors: list[Average]
    devices: list[tuple[Key, dict[_Field, Average]]]


class PromptMonitor(Online):
    """A monitor that estimates the state of the cloud and its devices.

    Problems can be built from the estimates.

    The monitor estimates the number of background tokens mu and the delay g of the cloud, as well
    as the bandwidths and drafting delays of the devices.

    Parameters
    ----------
    cloud_delay
        Initial delay g and its knots, which are the points between which g is linear. If None, g is
        learned from the first batch on, and is constant until more is known.
    smoothing
        Weight alpha of past observations in Eq. 1-2, which is also used for devices.
    pinned
        Position at which a batch changes g: the tokens of the batch ("observed"), or the smoothed
        tokens mu ("smoothed"), as in Eq. 2. With "smoothed", the delays of large and small batches
        are mixed at the same knot, which makes g too flat.
    outlier_limit
        Maximum deviation of a measured delay or bandwidth, as a multiple of the mean deviation;
        None for the plain moving averages of the paper. The smoothed tokens mu are always a plain
        moving average.
    uplink_bytes_per_second
        Uplink bandwidth of devices without observations, in bytes per second; None for the mean
        over the other devices.
    downlink_bytes_per_second
        Downlink bandwidth of devices without observations, in bytes per second; None for the mean
        over the other devices.
    draft_seconds
        Drafting delay of devices without observations, in seconds; None for the mean over the other
        devices.

    Raises
    ------
    InvalidInput
        If a value is outside its domain.
    """

    __slots__ = (
        "_batches",
        "_devices",
        "_errors",
        "_given",
        "_seconds",
        "_tokens",
    )
    _KIND = "prompts"
    _METRICS: ClassVar = {
        "devices": "Devices with observations.",
        "batches_total": "Observed batches.",
        "batch_seconds_total": "Time of the observed batches.",
        "batch_error_seconds_total": "Absolute error of the times that g predicted for them.",
    }
    smoothing = Fixed(partial(number, low=0.0, below=1))
    pinned = Fixed[_Pinned](partial(one_of, choices=get_args(_Pinned)))
    outlier_limit = Fixed(
        lambda name, value: math.inf if value is None else number(name, value, 1.0)
    )

    def __init__(
        self,
        cloud_delay: CloudDelay | None = None,
        *,
        smoothing: float = 0.8,
        pinned: _Pinned = "observed",
        outlier_limit: float | None = 4.0,
        uplink_bytes_per_second: float | None = None,
        downlink_bytes_per_second: float | None = None,
        draft_seconds: float | None = None,
    ) -> None:
        super().__init__(smoothing=smoothing, pinned=pinned, outlier_limit=outlier_limit)
        self._given = _measured(uplink_bytes_per_second, downlink_bytes_per_second, draft_seconds)
        if cloud_delay is not None:
            refuse_denormal(cloud_delay, "cloud_delay")
        self._tokens: Floats = np.array(KNOTS) if cloud_delay is None else cloud_delay.tokens
        self._seconds = None if cloud_delay is None else cloud_delay.seconds
        self._batches = Average()
        # Relative errors of g by nearest knot, because small batches are not representative.
        self._errors = [Average()] * len(self._tokens)
        self._devices: dict[Key, dict[_Field, Average]] = {}

    def _gauges(self) -> dict[str, float]:
        return {"devices": len(self._devices)}

    # ------------------------------------------------------------------ observations

    @locked
    def observe_batch(self, tokens: float, seconds: float) -> None:
        """Learn from a batch (Eq. 1-2).

        `tokens` is the number of tokens in the batch, and `seconds` is the time that the batch
        spent in the pipeline, excluding waiting.

        Raises
        ------
        InvalidInput
            If a value is negative or not finite; the monitor is then unchanged.
        """
        size = number("tokens", tokens, 0.0, LARGEST)
        delay = number("seconds", seconds, 0.0, LARGEST)
        # Tokens are counted, not measured, so a large batch is not an outlier.
        batches = self._batches.after(size, self.smoothing, math.inf)
        errors, off = self._errors.copy(), 0.0
        if self._seconds is None:
            g = np.full(len(self._tokens), delay)
        else:
            g = self._seconds.copy()
            place = size if self.pinned == "observed" else batches.value
            left, weight = self._place(place)
            before = float((1.0 - weight) * g[left] + weight * g[left + 1])
            off = abs(delay - before)
            unit = max(before, 1e-6 * delay, 1e-12)
            near = left + (weight > 0.5)
            error = errors[near]
            step, deviation = error.limited(
                (delay - before) / unit, 1.0, self.smoothing, self.outlier_limit
            )
            errors[near] = Average(0.0, deviation, error.seen + 1)
            _pin(g, left, weight, before, max(0.0, before + (1.0 - self.smoothing) * step * unit))
        with np.errstate(over="ignore"):
            steep = not np.isfinite(np.diff(g) / np.diff(self._tokens)).all()
        if steep:
            raise InvalidInput(
                f"seconds: expected a delay for which the slopes of g are finite, got {delay}"
            )
        g = normal(g)
        totals = self._counted(batches=1, batch_seconds=delay, batch_error_seconds=off)
        self._batches, self._errors, self._seconds, self._totals = batches, errors, g, totals

    @locked
    def observe_device(
        self,
        device: Key,
        *,
        uplink_bytes_per_second: float | None = None,
        downlink_bytes_per_second: float | None = None,
        draft_seconds: float | None = None,
    ) -> None:
        """Learn from measurements of a device; None means that a quantity was not measured.

        Raises
        ------
        InvalidInput
            If the device is not a valid key, or a value is not a finite number above 0; the monitor
            is then unchanged.
        """
        device = key_of("device", device)
        averages = self._devices.get(device, _NOTHING).copy()
        given = _measured(uplink_bytes_per_second, downlink_bytes_per_second, draft_seconds)
        for name, value in given.items():
            averages[name] = averages[name].after(value, self.smoothing, self.outlier_limit)
        self._devices[device] = averages

    @locked
    def forget(self, device: Key) -> None:
        """Remove all observations of a device, if any."""
        self._devices.pop(key_of("device", device), None)

    # ------------------------------------------------------------------ estimates

    @property
    def background_tokens(self) -> float:
        """Smoothed number of tokens mu from Eq. 1; 0 before the first batch."""
        return float(normal(np.array(self._batches.value)))

    @property
    def cloud_delay(self) -> CloudDelay:
        """Learned delay g of the cloud (Eq. 2).

        Raises
        ------
        InvalidInput
            If the delay is still unknown.
        """
        if self._seconds is None:
            raise InvalidInput(
                "cloud_delay: unknown; observe a batch first, or give an initial cloud_delay"
            )
        return CloudDelay(tokens=self._tokens, seconds=self._seconds)

    @property
    @locked
    def devices(self) -> tuple[Key, ...]:
        """Keys of the devices for which there are observations."""
        return tuple(self._devices)

    @locked
    def device(self, device: Key, name: _Field) -> float:
        """Return the moving average of a quantity for a device.

        If the quantity was not observed, return the initial value or the mean over the other
        devices.

        Raises
        ------
        InvalidInput
            If the value is unknown, the device is not a valid key, or the name is not an argument
            of `observe_device`.
        """
        own = self._devices.get(key_of("device", device), _NOTHING)[one_of("name", name, _FIELDS)]
        if own.seen:
            return own.value
        if name in self._given:
            return self._given[name]
        others = [one[name].value for one in self._devices.values() if one[name].seen]
        if not others:
            raise InvalidInput(f"{name}: unknown; observe a device first, or give an initial value")
        return fmean(others)

    @locked
    def problem(
        self,
        device: Key,
        prompt_tokens: int,
        *,
        bytes_per_token: float,
        pipeline_length: int,
        **fields: Any,
    ) -> PromptChunkingProblem:
        """Return the `prompt-chunking` problem for a device's next prompt.

        Parameters
        ----------
        device
            Name of the device.
        prompt_tokens, bytes_per_token, pipeline_length
            Fields of the problem with the same names.
        fields
            Other fields of the problem, by name.

        Raises
        ------
        InvalidInput
            If the cloud delay or a bandwidth is unknown, or a field is outside its domain.
        """
        return PromptChunkingProblem(
            prompt_tokens=prompt_tokens,
            bytes_per_token=bytes_per_token,
            uplink_bytes_per_second=self.device(device, "uplink_bytes_per_second"),
            downlink_bytes_per_second=self.device(device, "downlink_bytes_per_second"),
            cloud_delay=self.cloud_delay,
            background_tokens=self.background_tokens,
            pipeline_length=pipeline_length,
            **fields,
        )

    @locked
    def parallel_steps(self, device: Key, draft_tokens: int, *, bytes_per_token: float) -> int:
        """Return the number of parallel steps lambda for a draft of the given length (Eq. 6).

        Raises
        ------
        InvalidInput
            If the cloud delay, a bandwidth or the drafting delay is unknown.
        """
        return parallel_steps(
            draft_tokens,
            bytes_per_token=bytes_per_token,
            uplink_bytes_per_second=self.device(device, "uplink_bytes_per_second"),
            downlink_bytes_per_second=self.device(device, "downlink_bytes_per_second"),
            cloud_seconds=self.cloud_delay.at(self.background_tokens),
            draft_seconds=self.device(device, "draft_seconds"),
        )

    # ------------------------------------------------------------------ state

    def _saved(self) -> _State:
        return _State(
            **self._settings
            | {"outlier_limit": None if math.isinf(self.outlier_limit) else self.outlier_limit},
            given=self._given,
            tokens=self._tokens.tolist(),
            seconds=None if self._seconds is None else self._seconds.tolist(),
            batches=self._batches,
            errors=self._errors,
            devices=list(self._devices.items()),
        )

    @classmethod
    @restoring()
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Restore a monitor from a state.

        Raises
        ------
        InvalidInput
            If the data is not a valid state of a monitor.
        """
        found = _State.read(state)
        seconds = np.zeros(len(found.tokens)) if found.seconds is None else np.array(found.seconds)
        g = CloudDelay(tokens=np.array(found.tokens), seconds=seconds)
        settings: Any = cls._settings_in(found)
        monitor = cls(g, **settings | found.given)
        if len(found.errors) != len(g.tokens):
            raise InvalidInput(
                f"errors: expected {len(g.tokens)} entries, one per knot, got"
                f" {describe(found.errors)}"
            )
        keys = distinct("devices", [key for key, _ in found.devices])
        known = [
            one.value for _, averages in found.devices for one in averages.values() if one.seen
        ]
        if min(known, default=1.0) < SMALLEST:
            raise InvalidInput(
                f"devices: expected positive averages of observations, got {describe(known)}"
            )
        monitor._seconds = None if found.seconds is None else g.seconds
        monitor._batches, monitor._errors = found.batches, found.errors
        monitor._restore_totals(found.totals)
        monitor._devices = {
            key: _NOTHING | averages for key, (_, averages) in zip(keys, found.devices, strict=True)
        }
        return monitor

    # ------------------------------------------------------------------ inside

    def _place(self, tokens: float) -> tuple[int, float]:
        """Return the index of the knot to the left of `tokens` and the weight of the knot to the
        right.

        The weight is used for interpolation, and exceeds 1 beyond the last knot.
        """
        knots = self._tokens
        left = int(np.searchsorted(knots[1:-1], tokens, side="right"))
        return left, max(0.0, float((tokens - knots[left]) / (knots[left + 1] - knots[left])))


def _measured(*values: float | None) -> dict[_Field, float]:
    """Check the measurements of a device, and return the values that are not None, by name."""
    given = zip(_FIELDS, values, strict=True)
    return {
        name: number(name, value, SMALLEST, LARGEST) for name, value in given if value is not None
    }


def _pin(s: Floats, left: int, weight: float, before: float, target: float) -> None:
    """Change the value of g at a position from `before` to `target`.

    The two neighbouring knots are changed as little as possible. The other knots are then adjusted
    to keep g nondecreasing.
    """
    right = left + 1
    shift = (target - before) / ((1.0 - weight) * (1.0 - weight) + weight * weight)
    s[left] += shift * (1.0 - weight)
    s[right] += shift * weight
    if s[left] < 0.0:  # delays are nonnegative, so only the right knot changes
        s[left] = 0.0
        s[right] = target / weight if weight > 0.0 else s[right]
    if s[left] > s[right] and weight > 0.0:
        s[left] = s[right] = target
    np.minimum(s[:left], s[left], out=s[:left])
    np.maximum(s[right:], max(s[left], s[right]), out=s[right:])
