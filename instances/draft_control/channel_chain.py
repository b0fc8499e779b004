"""From a device's log to a problem of draft control: states by binning, transitions by counting, rates per state.

An iteration stops at its first rejection, and what was drafted behind it was never tested: accepted / drafted is too
low. With at most one rejection per iteration, accepted / (accepted + rejections) is the maximum-likelihood estimate of
the acceptance rate of a geometric number cut off at the draft length.

The last row of the trace counts as followed by the first. So every state that was seen is left again and reached from
every other: there is one recurrent class, without transient states. Without smoothing the stationary distribution is
the share of rows in each state.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

from specopt.models.arguments import integer, number
from specopt.models.draft_control import ChannelState, DraftControlProblem, Probability, Resolution
from specopt.models.errors import InvalidInput
from specopt.models.fields import Column, Floats, Ints, NonNegativeInt, Positive, Truths, check, describe
from specopt.models.markov_chain import TransitionMatrix

MAX_BINS = 1000

Acceptance = Callable[[float, int], float]
"""Maps a state's measured acceptance rate and a resolution to the acceptance rate at that resolution."""


class RarelySeenState(UserWarning):
    """A state of a chain was seen in too few iterations for its transitions or its acceptance rate to be trusted."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ChannelTrace:
    """Iterations of one device, in order.

    Parameters
    ----------
    uplink_bits_per_second
        C_u of each iteration, shape (n,).
    confidence
        The draft model's confidence in [0, 1], as known at the start of the iteration.
    accepted, drafted
        Tokens accepted before the first rejection, and drafted; an iteration without drafts tells nothing of
        acceptance, but counts for the channel.
    resolution
        Lattice resolution of each iteration; None: all had the same, whichever it was.
    """

    uplink_bits_per_second: Annotated[Floats, Column(Positive, "iteration")]
    confidence: Annotated[Floats, Column(Probability, "iteration")]
    accepted: Annotated[Ints, Column(NonNegativeInt, "iteration")]
    drafted: Annotated[Ints, Column(NonNegativeInt, "iteration")]
    resolution: Annotated[Ints, Column(Resolution, "iteration")] | None = None

    def __post_init__(self) -> None:
        check(self)
        if len(self) < 2:
            raise InvalidInput(f"uplink_bits_per_second: expected at least 2 iterations, got {len(self)}")
        wrong = self.accepted > self.drafted
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InvalidInput(
                f"accepted[{row}]: expected at most the {self.drafted[row]} drafted tokens, got {self.accepted[row]}"
            )

    def __len__(self) -> int:
        return len(self.uplink_bits_per_second)


@dataclass(frozen=True, kw_only=True, eq=False)
class ChannelChain:
    """A Markov chain of states that a device can tell apart; all arrays by state, in order of rate and confidence.

    Parameters
    ----------
    rate_edges, confidence_edges
        Inner edges of the bins; a value on an edge belongs to the bin below.
    cells
        Bin of the uplink rate and of the confidence, shape (S, 2); bins that were never seen are no states.
    uplink_bits_per_second
        Harmonic mean of the rates: upload seconds are right on average.
    counts
        Iterations in each state.
    transition_counts, transition
        How often each state followed each, shape (S, S), and the probabilities made of that.
    acceptance_rates, standard_errors
        Accepted over tested drafts, and the standard error of that; the trace's rate where nothing was tested.
    tested
        Drafts up to the first rejection, that included.
    rare
        Indices of states with fewer iterations, or fewer tested drafts, than asked for.
    by_resolution
        Accepted and tested drafts by state at each resolution of the trace; None without such a column.
    """

    rate_edges: Floats
    confidence_edges: Floats
    cells: Ints
    uplink_bits_per_second: Floats
    counts: Ints
    transition_counts: Ints
    transition: Floats
    acceptance_rates: Floats
    standard_errors: Floats
    tested: Ints
    rare: tuple[int, ...]
    by_resolution: Mapping[int, tuple[Ints, Ints]] | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.counts)

    def state_of(self, uplink_bits_per_second: float, confidence: float) -> int:
        """Return the state of a measurement; where its cell was never seen, the nearest cell, rates first."""
        rate = int(np.searchsorted(self.rate_edges, uplink_bits_per_second))
        sure = int(np.searchsorted(self.confidence_edges, confidence))
        distance = np.abs(self.cells - [rate, sure]) @ [MAX_BINS, 1]
        return int(np.argmin(distance))

    def problem(
        self,
        *,
        vocabulary_size: int,
        draft_seconds_per_token: float,
        verify_seconds: float,
        draft_lengths: tuple[int, int],
        resolutions: Sequence[int],
        acceptance: Acceptance | None = None,
        downlink_bits_per_second: float | None = None,
        name: str = "",
    ) -> DraftControlProblem:
        """Return the problem of these states.

        Parameters
        ----------
        vocabulary_size, draft_seconds_per_token, verify_seconds, draft_lengths, resolutions
            As in the problem.
        acceptance
            How a state's acceptance rate depends on the resolution, such as `line_in_distance`. None: as measured,
            where the trace has a column of resolutions, or there is one resolution, taken to be the trace's.
        downlink_bits_per_second
            The same in all states; None: free.
        name
            Of the problem.

        Raises
        ------
        InvalidInput
            If a state has no drafts at one of the resolutions, or the trace does not say how rates depend on it.
        """
        rates = self._rates([int(value) for value in resolutions], acceptance)
        return DraftControlProblem(
            name=name,
            vocabulary_size=vocabulary_size,
            draft_seconds_per_token=draft_seconds_per_token,
            verify_seconds=verify_seconds,
            draft_lengths=draft_lengths,
            resolutions=np.array(resolutions),
            states=tuple(
                ChannelState(
                    uplink_bits_per_second=uplink,
                    acceptance_rates=row,
                    downlink_bits_per_second=downlink_bits_per_second,
                )
                for uplink, row in zip(self.uplink_bits_per_second.tolist(), rates, strict=True)
            ),
            transition=TransitionMatrix(self.transition),
        )

    def _rates(self, resolutions: list[int], acceptance: Acceptance | None) -> Floats:
        if acceptance is not None:
            rates = [[acceptance(rate, value) for value in resolutions] for rate in self.acceptance_rates.tolist()]
            return np.array(rates, np.float64)
        if self.by_resolution is None:
            if len(resolutions) > 1:
                raise InvalidInput(
                    "acceptance: expected how rates depend on the resolution, because the trace has no column of "
                    "resolutions, got None"
                )
            return self.acceptance_rates[:, None]
        columns = []
        for value in resolutions:
            if value not in self.by_resolution:
                known = ", ".join(map(str, sorted(self.by_resolution)))
                raise InvalidInput(f"resolutions: expected those of the trace ({known}), got {value}")
            accepted, tested = self.by_resolution[value]
            if not tested.all():
                state = int(np.argmin(tested))
                raise InvalidInput(
                    f"resolutions: expected drafts at every resolution in every state, got none at {value} in state "
                    f"{state} (rate bin {self.cells[state, 0]}, confidence bin {self.cells[state, 1]})"
                )
            columns.append(accepted / tested)
        return np.stack(columns, axis=1)


def line_in_distance(loss: float, distances: Mapping[int, float], *, measured_distance: float = 0.0) -> Acceptance:
    """Return alpha(l) = alpha_inf - c TV(q, q_l), with alpha_inf such that the measured rate is met.

    Parameters
    ----------
    loss
        c >= 0.
    distances
        TV(q, q_l) of every resolution l that will be asked for.
    measured_distance
        TV(q, q-hat) of what the trace was measured with; 0: nothing was quantised.
    """
    loss = number("loss", loss)

    def rate(measured: float, resolution: int) -> float:
        if resolution not in distances:
            raise InvalidInput(f"distances: expected one for resolution {resolution}, got {describe(dict(distances))}")
        unquantised = min(1.0, measured + loss * measured_distance)
        return min(1.0, max(0.0, unquantised - loss * distances[resolution]))

    return rate


def chain_from_trace(
    trace: ChannelTrace,
    *,
    rate_bins: int | Sequence[float] = 2,
    confidence_bins: int | Sequence[float] = 3,
    smoothing: float = 0.0,
    least_iterations: int = 50,
    least_tested: int = 100,
) -> ChannelChain:
    """Return the chain of a trace.

    Parameters
    ----------
    trace
        Iterations in order.
    rate_bins, confidence_bins
        A number of bins of about equally many iterations each (fewer where values repeat), or their inner edges.
    smoothing
        Transitions out of every state that are added to those seen, spread as the trace's iterations are.
    least_iterations, least_tested
        A state with fewer iterations, or fewer tested drafts, is warned of.

    Raises
    ------
    InvalidInput
        If an argument is outside its domain.

    Warns
    -----
    RarelySeenState
        Once, naming the states.
    """
    smoothing = number("smoothing", smoothing, 0)
    least_iterations = integer("least_iterations", least_iterations, 0)
    least_tested = integer("least_tested", least_tested, 0)
    rate_edges = _edges("rate_bins", rate_bins, trace.uplink_bits_per_second)
    confidence_edges = _edges("confidence_bins", confidence_bins, trace.confidence)
    pairs = np.stack(
        [
            np.searchsorted(rate_edges, trace.uplink_bits_per_second),
            np.searchsorted(confidence_edges, trace.confidence),
        ],
        axis=1,
    )
    cells, states = np.unique(pairs, axis=0, return_inverse=True)
    states = states.reshape(-1)
    size = len(cells)
    counts = np.bincount(states, minlength=size)
    followed = np.zeros((size, size), np.int64)
    np.add.at(followed, (states, np.roll(states, -1)), 1)  # the first row follows the last
    transition = followed + smoothing * counts / len(trace)
    transition /= transition.sum(axis=1, keepdims=True)
    rejected = trace.accepted < trace.drafted
    accepted, tested = _tested(trace, states, size, rejected, np.ones(len(trace), np.bool_))
    if not tested.any():
        raise InvalidInput("drafted: expected drafts in at least one iteration, got none")
    pooled = float(accepted.sum() / tested.sum())
    rates = np.where(tested > 0, accepted / np.maximum(tested, 1), pooled)
    errors = np.where(tested > 0, np.sqrt(rates * (1.0 - rates) / np.maximum(tested, 1)), np.nan)
    rare = tuple(np.flatnonzero((counts < least_iterations) | (tested < least_tested)).tolist())
    if rare:
        _warn(rare, cells, counts, tested)
    by_resolution = None
    if trace.resolution is not None:
        by_resolution = {
            value: _tested(trace, states, size, rejected, trace.resolution == value)
            for value in np.unique(trace.resolution).tolist()
        }
    return ChannelChain(
        rate_edges=rate_edges,
        confidence_edges=confidence_edges,
        cells=cells.astype(np.int64),
        uplink_bits_per_second=counts / np.bincount(states, 1.0 / trace.uplink_bits_per_second, size),
        counts=counts,
        transition_counts=followed,
        transition=transition,
        acceptance_rates=rates,
        standard_errors=errors,
        tested=tested,
        rare=rare,
        by_resolution=by_resolution,
    )


def _tested(trace: ChannelTrace, states: Ints, size: int, rejected: Truths, where: Truths) -> tuple[Ints, Ints]:
    """Return accepted and tested drafts by state, of some of the iterations."""
    accepted = np.bincount(states[where], trace.accepted[where], size).astype(np.int64)
    return accepted, accepted + np.bincount(states[where & rejected], minlength=size)


def _edges(name: str, bins: int | Sequence[float], values: Floats) -> Floats:
    """Return the inner edges of bins: those given, or between equally many values."""
    if isinstance(bins, (int, np.integer)):
        integer(name, bins, 1, MAX_BINS)
        distinct = np.unique(values)
        if len(distinct) <= bins:
            middle: Floats = 0.5 * (distinct[1:] + distinct[:-1])
            return middle
        edges: Floats = np.unique(np.quantile(values, np.arange(1, bins) / bins))
        below: Floats = edges[edges < distinct[-1]]
        return below
    try:
        given: Floats = np.array(bins, np.float64)
    except (TypeError, ValueError):
        given = np.array([np.nan])
    good = given.ndim == 1 and len(given) < MAX_BINS and np.isfinite(given).all() and (np.diff(given) > 0).all()
    if not good or isinstance(bins, str):
        raise InvalidInput(f"{name}: expected a number of bins or increasing inner edges, got {describe(bins)}")
    return given


def _warn(rare: tuple[int, ...], cells: Ints, counts: Ints, tested: Ints) -> None:
    shown = "; ".join(
        f"state {state} (rate bin {cells[state, 0]}, confidence bin {cells[state, 1]}): {counts[state]} iterations, "
        f"{tested[state]} tested drafts"
        for state in rare[:5]
    )
    more = f"; and {len(rare) - 5} more" if len(rare) > 5 else ""
    warnings.warn(f"{len(rare)} of {len(cells)} states rarely seen: {shown}{more}", RarelySeenState, stacklevel=3)
