"""The maximum number of devices that any policy could serve: an upper bound from the verifier time
that every response needs to be in time.

The bound holds in the long run (a fluid limit) for policies that starve no device. Responses may be
late, but the responses of every class take on average at most 1 + `late_share` times the allowed
seconds. (A policy that starves a device forever has few late responses, and can serve any number of
devices.) The order of a policy does not matter, and it may know the future:

* A device of class tau ends a response of L tokens at least every (1 + late) L / tau seconds and
  its thinking time: serving it faster only brings its next response sooner. By renewal, its load is
  at least the work of a response over that cycle.
* A response takes one verification from scratch, then others until it is complete; the tokens done
  before each are a renewal process. Every later one keeps its prefix cached at least while the
  device drafts and sends, or computes it again. At any price of a byte for a second the cheaper of
  the two is a bound, if the cache's own bytes are given back at that price (weak duality). The
  bound is the least over a grid of prices. A small cache binds late: who knew when a response ends
  could serve it in one go, shortly before it is due.
* A batch costs its overhead once. Iterations in large batches share it, but each lasts as long as
  its batch: over a response, the seconds of its batches are at most what drafts and network leave
  of L / tau. With y_i seconds of work in the batch of iteration i, the overheads come to c sum w_i
  / y_i >= c (sum sqrt(w_i))^2 / sum y_i (Cauchy-Schwarz).
"""

from __future__ import annotations

import math

import numpy as np

from specopt.models.arguments import number
from specopt.models.fields import Floats
from specopt.models.verification_batch.workload import VerificationWorkload

_PROMPT_BINS = 32
# tokens that fewer responses reach are ignored, which reduces the work and keeps the bound valid
_RARE = 1e-6


def ceiling(workload: VerificationWorkload, *, late_share: float = 0.01) -> float:
    """Return a number of devices that no policy can exceed in the long run, or 0 if drafting and
    network alone make a class late.

    Parameters
    ----------
    workload
        The requests to the verifier.
    late_share
        Average excess of the responses of a class over the allowed time, as a share of it. If 1 %
        of the responses are late and take twice as long as allowed, it is 0.01.

    Raises
    ------
    InvalidInput
        If the share is outside its domain.
    """
    late_share = number("late_share", late_share, 0)
    outcomes = _window(workload)
    chances, drafted, sent, gained = outcomes.T
    longer = _longer(
        workload.response_median_tokens, workload.response_sigma, workload.most_response_tokens
    )
    visits = np.zeros(
        np.count_nonzero(longer > _RARE)
    )  # chance that a verification starts with t tokens done
    visits[0] = 1.0
    step = np.bincount(gained.astype(int), chances)
    for t in range(1, len(visits)):
        back = min(t, len(step) - 1)
        visits[t] = step[1 : back + 1] @ visits[t - back : t][::-1]
    visits *= longer[: len(visits)]
    away = (
        chances @ drafted / workload.draft_tokens_per_second
        + workload.uplink_seconds
        + workload.downlink_seconds
    )
    away += 2.0 * workload.jitter_seconds
    c = workload.estimator.overhead_seconds
    used = workload.class_shares > 0.0
    allowed = (1.0 + late_share) * longer.sum() / workload.class_speeds[used]
    in_batches = allowed - visits.sum() * (away + c)
    if in_batches.min() <= 0.0:
        return 0.0
    per_second = workload.class_shares[used] / (
        allowed + workload.think_seconds
    )  # responses of a device
    room = math.inf if workload.cache_memory_bytes is None else workload.cache_memory_bytes
    prices = [0.0] if math.isinf(room) else [0.0, *np.geomspace(0.01, 100.0, 13) / max(room, 1.0)]
    bounds = []
    for price in prices:
        work, root = _work(workload, visits, chances, sent, price * away)
        load = float(per_second @ (work + c * root**2 / in_batches))
        bounds.append((1.0 + (price * room if price else 0.0)) / load)
    return min(bounds)


def _work(
    workload: VerificationWorkload, visits: Floats, chances: Floats, sent: Floats, rent: float
) -> tuple[float, float]:
    """Return two expected sums over the verifications of a response: their work, and the square
    root of their minimum work.

    A cached byte costs ``rent``. If caching costs more than computing the prefix again, it is
    computed again.
    """
    time = workload.estimator
    # a prompt is rounded down to the shortest of its bin
    longer = _longer(
        workload.prompt_median_tokens, workload.prompt_sigma, workload.most_prompt_tokens
    )
    lengths, mass = _bins(longer)
    work = root = 0.0
    for chance, drafts in zip(chances, sent, strict=True):
        prefix = lengths[:, None] + np.arange(len(visits))[None, :] - 1.0
        computed = time.weights(prefix + drafts + 1.0, np.zeros_like(prefix))
        seconds = (
            time.weights(np.full_like(prefix, drafts + 1.0), prefix)
            if workload.prefix_cache
            else computed
        )
        seconds[:, 0] = computed[:, 0]
        priced = np.minimum(seconds + rent * workload.kv_bytes_per_token * prefix, computed)
        work += chance * float(mass @ priced @ visits)
        root += chance * float(mass @ np.sqrt(np.minimum(seconds, computed)) @ visits)
    return work, root


def _window(workload: VerificationWorkload) -> Floats:
    """Return the possible outcomes of a window, one row each: probability, tokens drafted, tokens
    sent and tokens gained.
    """
    predictor = workload.predictor
    go_right, go_wrong, go_after = 1.0, 1.0, 1.0
    if predictor is not None:
        go_right, go_wrong = 1.0 - predictor.false_reject, predictor.false_accept
        go_after = predictor.false_accept_after
    rows = []
    states = {
        (True, 0): 1.0
    }  # whether all were correct so far, and the number before the first incorrect one
    for i, rate in enumerate(workload.acceptance_rates.tolist()):
        following: dict[tuple[bool, int], float] = {}
        for (intact, accepted), chance in states.items():
            if intact:
                branches = [
                    (rate, go_right, (True, accepted + 1)),
                    (1.0 - rate, go_wrong, (False, accepted)),
                ]
            else:
                branches = [(1.0, go_after, (False, accepted))]
            for share, go_on, state in branches:
                following[state] = following.get(state, 0.0) + chance * share * go_on
                rows.append((chance * share * (1.0 - go_on), i + 1, i, accepted + 1))
        states = following
    rows += [
        (chance, workload.window, workload.window, accepted + 1)
        for (_, accepted), chance in states.items()
    ]
    return np.array([row for row in rows if row[0] > 0.0], np.float64)


def _longer(median: float, sigma: float, most: int) -> Floats:
    """Return the probability that a length exceeds 0, 1, ..., most - 1. Lengths are lognormal,
    rounded, and limited to the range from 1 to `most`.
    """
    halves = np.arange(1, most) + 0.5
    if sigma == 0.0:
        above = np.where(np.rint(median) > halves, 1.0, 0.0)
    else:
        above = np.array(
            [0.5 * math.erfc(math.log(half / median) / (sigma * math.sqrt(2.0))) for half in halves]
        )
    return np.concatenate([[1.0], above])


def _bins(longer: Floats) -> tuple[Floats, Floats]:
    """Return lengths and their probabilities: the shortest length of each of several bins with
    about equal probability.
    """
    places = np.unique(
        np.searchsorted(-longer, -np.linspace(1.0, 0.0, _PROMPT_BINS, endpoint=False), side="right")
        - 1
    )
    ends = np.append(longer[places[1:]], 0.0)
    lengths: Floats = np.asarray(places + 1.0, np.float64)
    return lengths, longer[places] - ends
