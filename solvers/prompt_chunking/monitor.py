"""What the cloud knows of itself and of the devices: moving averages and a g that is learned (paper 4, Sec. 3.2).

>>> from specopt.instances.prompt_chunking.workload import FIGURE_1
>>> monitor = StateMonitor(FIGURE_1, uplink_bytes_per_second=7.5e6, downlink_bytes_per_second=12.5e6)
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
from typing import Any, Literal, Self

import numpy as np

from specopt.models.arguments import number, positive
from specopt.models.cloud_delay import CloudDelay
from specopt.models.device_speculation import parallel_steps
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, describe
from specopt.models.prompt_chunking import PromptChunkingProblem
from specopt.solvers.prompt_chunking.moving_average import Average

Key = str | int

KNOTS = (0.0, 16.0, 64.0, 256.0, 1024.0, 4096.0)
"""Where g may bend if nothing else is known."""

_FIELDS = ("uplink_bytes_per_second", "downlink_bytes_per_second", "draft_seconds")


class StateMonitor:
    """Keep mu and g of the cloud, and bandwidths and drafting delay of every device; give problems and steps.

    Parameters
    ----------
    cloud_delay
        What g is believed to be at first, and where its knots are; None: learned from the first batch on, flat where
        nothing is known.
    smoothing
        alpha of Eq. 1-2, also for the devices.
    pinned
        Where a batch moves g: at its own tokens ("observed"), or at mu, the smoothed tokens ("smoothed"), as Eq. 2 has
        it. The latter mixes delays of large and small batches into one knot: g comes out too flat.
    outlier_limit
        How many mean deviations a measured delay or bandwidth counts at most; None: the plain moving averages of the
        paper. mu is always plain.
    uplink_bytes_per_second, downlink_bytes_per_second, draft_seconds
        Of devices that have not been observed; None: the mean of those that have.

    Raises
    ------
    InvalidInput
        If a value is outside its domain.
    """

    def __init__(
        self,
        cloud_delay: CloudDelay | None = None,
        *,
        smoothing: float = 0.8,
        pinned: Literal["observed", "smoothed"] = "observed",
        outlier_limit: float | None = 4.0,
        uplink_bytes_per_second: float | None = None,
        downlink_bytes_per_second: float | None = None,
        draft_seconds: float | None = None,
    ) -> None:
        self.smoothing = number("smoothing", smoothing, 0, below=1)
        if pinned not in ("observed", "smoothed"):
            raise InvalidInput(f"pinned: expected 'observed' or 'smoothed', got {describe(pinned)}")
        self.pinned = pinned
        self.outlier_limit = math.inf if outlier_limit is None else number("outlier_limit", outlier_limit, 1.0)
        given = dict(zip(_FIELDS, (uplink_bytes_per_second, downlink_bytes_per_second, draft_seconds), strict=True))
        self._given = {name: positive(name, value) for name, value in given.items() if value is not None}
        self._tokens: Floats = np.array(KNOTS) if cloud_delay is None else cloud_delay.tokens.copy()
        self._seconds: Floats | None = None if cloud_delay is None else cloud_delay.seconds.copy()
        self._batches = Average(self.smoothing, math.inf)  # tokens are counted, not measured: a large batch is no error
        # of g, relative, by nearest knot: what a small batch shows says nothing about large ones
        self._errors = [self._average() for _ in self._tokens]
        self._devices: dict[Key, dict[str, Average]] = {}

    # ------------------------------------------------------------------ what is observed

    def observe_batch(self, tokens: float, seconds: float) -> None:
        """Take in a batch: its tokens and how long the whole pipeline took for it, waiting excluded (Eq. 1-2).

        Raises
        ------
        InvalidInput
            If a value is negative or not finite; then nothing has changed.
        """
        size, delay = number("tokens", tokens, 0.0), number("seconds", seconds, 0.0)
        self._batches.add(size)
        if self._seconds is None:
            self._seconds = np.full(len(self._tokens), delay)
            return
        place = size if self.pinned == "observed" else self._batches.value
        before = self._at(place)
        unit = max(before, 1e-6 * delay, 1e-12)
        left, weight = self._place(place)
        errors = self._errors[left + (weight > 0.5)]
        step = errors.limited((delay - before) / unit, 1.0) * unit
        errors.count += 1
        self._pin(place, max(0.0, before + (1.0 - self.smoothing) * step))

    def observe_device(
        self,
        device: Key,
        *,
        uplink_bytes_per_second: float | None = None,
        downlink_bytes_per_second: float | None = None,
        draft_seconds: float | None = None,
    ) -> None:
        """Take in what a device has measured of itself; None: not measured.

        Raises
        ------
        InvalidInput
            If a value is not a finite number above 0; then nothing has changed.
        """
        given = dict(zip(_FIELDS, (uplink_bytes_per_second, downlink_bytes_per_second, draft_seconds), strict=True))
        values = {name: positive(name, value) for name, value in given.items() if value is not None}
        averages = self._devices.setdefault(device, {name: self._average() for name in _FIELDS})
        for name, value in values.items():
            averages[name].add(value)

    def forget(self, device: Key) -> None:
        """Drop what is known of a device, if anything is."""
        self._devices.pop(device, None)

    # ------------------------------------------------------------------ what is known

    @property
    def background_tokens(self) -> float:
        """mu of Eq. 1; 0 before the first batch."""
        return self._batches.value if self._batches.count else 0.0

    @property
    def cloud_delay(self) -> CloudDelay:
        """g of Eq. 2.

        Raises
        ------
        InvalidInput
            If nothing is known of it.
        """
        if self._seconds is None:
            raise InvalidInput("cloud_delay: expected a batch to be observed first, or a g to begin with")
        return CloudDelay(tokens=self._tokens, seconds=self._seconds)

    @property
    def devices(self) -> tuple[Key, ...]:
        """The devices that have been observed."""
        return tuple(self._devices)

    def device(self, device: Key, name: str) -> float:
        """Return a device's moving average, or what stands for it: the given value, or the mean of other devices.

        Raises
        ------
        InvalidInput
            If nothing is known.
        """
        own = self._devices.get(device, {}).get(name)
        if own is not None and own.count:
            return own.value
        if name in self._given:
            return self._given[name]
        others = [averages[name].value for averages in self._devices.values() if averages[name].count]
        if not others:
            raise InvalidInput(f"{name}: expected a device to be observed first, or a value to begin with")
        return math.fsum(others) / len(others)

    def problem(
        self, device: Key, prompt_tokens: int, *, bytes_per_token: float, pipeline_length: int, **fields: Any
    ) -> PromptChunkingProblem:
        """Return the problem of a device's next prompt.

        Parameters
        ----------
        device
            Whose prompt it is.
        prompt_tokens, bytes_per_token, pipeline_length, fields
            The rest of the problem's fields.

        Raises
        ------
        InvalidInput
            If nothing is known of the cloud or the links, or a field is outside its domain.
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

    def parallel_steps(self, device: Key, draft_tokens: int, *, bytes_per_token: float) -> int:
        """Return lambda of Eq. 6 for a draft of so many tokens.

        Raises
        ------
        InvalidInput
            If nothing is known of the cloud, the links or the drafting delay.
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

    def state(self) -> dict[str, Any]:
        """Return everything as JSON-like data."""
        return {
            "smoothing": self.smoothing,
            "pinned": self.pinned,
            "outlier_limit": None if math.isinf(self.outlier_limit) else self.outlier_limit,
            "given": dict(self._given),
            "tokens": self._tokens.tolist(),
            "seconds": None if self._seconds is None else self._seconds.tolist(),
            "batches": self._batches.state(),
            "errors": [errors.state() for errors in self._errors],
            "devices": [
                [device, {name: average.state() for name, average in averages.items()}]
                for device, averages in self._devices.items()
            ],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return the monitor whose `state` this is.

        Raises
        ------
        InvalidInput
            If it is not the state of a monitor.
        """
        try:
            monitor = cls(
                smoothing=state["smoothing"], pinned=state["pinned"], outlier_limit=state["outlier_limit"],
                **state["given"],
            )  # fmt: skip
            seconds = state["seconds"]
            known = CloudDelay(
                tokens=np.array(state["tokens"], dtype=np.float64),
                seconds=np.zeros(len(state["tokens"])) if seconds is None else np.array(seconds, dtype=np.float64),
            )
            monitor._tokens = known.tokens.copy()
            monitor._seconds = None if seconds is None else known.seconds.copy()
            monitor._batches.restore(state["batches"])
            if len(state["errors"]) != len(known.tokens):
                raise InvalidInput("state: expected errors for every knot")
            monitor._errors = [monitor._average().restore(errors) for errors in state["errors"]]
            for device, averages in state["devices"]:
                monitor._devices[device] = {name: monitor._average().restore(averages[name]) for name in _FIELDS}
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput(f"state: expected the state of a monitor, but {error!r}") from None
        return monitor

    # ------------------------------------------------------------------ inside

    def _average(self) -> Average:
        return Average(self.smoothing, self.outlier_limit)

    def _place(self, tokens: float) -> tuple[int, float]:
        """Return the knot to the left, and the weight of the one to the right; above 1 beyond the last knot."""
        knots = self._tokens
        if tokens <= knots[0]:
            return 0, 0.0
        left = min(int(np.searchsorted(knots, tokens, side="right")) - 1, len(knots) - 2)
        return left, float((tokens - knots[left]) / (knots[left + 1] - knots[left]))

    def _at(self, tokens: float) -> float:
        assert self._seconds is not None
        left, weight = self._place(tokens)
        return float((1.0 - weight) * self._seconds[left] + weight * self._seconds[left + 1])

    def _pin(self, tokens: float, target: float) -> None:
        """Let g(tokens) be the target: the least change of the neighbouring knots, then the others in order again."""
        s = self._seconds
        assert s is not None
        left, weight = self._place(tokens)
        right = left + 1
        shift = (target - self._at(tokens)) / ((1.0 - weight) ** 2 + weight**2)
        s[left] += shift * (1.0 - weight)
        s[right] += shift * weight
        if s[left] < 0.0:  # no delay is negative: the right knot alone carries the target
            s[left] = 0.0
            s[right] = target / weight if weight > 0.0 else s[right]
        if s[left] > s[right] and weight > 0.0:
            s[left] = s[right] = target
        np.minimum(s[:left], s[left], out=s[:left])
        np.maximum(s[right:], max(s[left], s[right]), out=s[right:])
