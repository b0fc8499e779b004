"""Kernels for online fair goodput: one round of the scheduler, and simulations of whole runs.

The simulations execute the same code as the scheduler.

Clients are numbered i = 1..N. As in paper 5, S is the number of draft tokens, alpha is the
acceptance rate, X is the smoothed goodput, and C is the budget. The tables that the module
`columns` describes hold the scheduler's information about the clients. Whether draft j of client i
in round t of run r is accepted is decided by a random number that depends only on (key, r, t, i,
j). All policies therefore use the same random numbers.
"""

import numpy as np

from specopt.solvers.fair_goodput.kernels.columns import (
    ABSENT,
    ANCHOR,
    BY_PLACE,
    CAP,
    ESTIMATE,
    EXPECTED,
    FAIRNESS,
    FIRST_BY_PLACE,
    FIXED,
    FORETOLD,
    GOODPUT,
    GRADIENT,
    HITS,
    IDLE,
    LEARNING,
    LEAST,
    LIKE_BEFORE,
    LONGEST_SILENCE,
    MEAN,
    MEMORIES,
    MOST,
    OPTIMISM,
    PATIENCE,
    PLACES,
    PRIOR,
    PRIOR_TESTED,
    PROBE_AFTER,
    PROMISE,
    RANDOM,
    RATES,
    REALISED,
    RELUCTANCE,
    ROBUST,
    ROUNDS,
    SEEN,
    SILENT,
    SLOPE,
    SMOOTHING,
    SOON,
    TELLING,
    TRIALS,
    UNHEARD,
    WEIGHT,
)
from specopt.solvers.kernels.heap import heapify, place, pop
from specopt.solvers.kernels.kernel import helper, kernel, record
from specopt.solvers.kernels.random import GOLDEN, mixed, pick, uniform

Scheduling = record("Scheduling", policy="i8", options="f8[::1]", discounts="f8[::1]", budget="i8")
"""The scheduling policy and its parameters.

`options` are the options of the policy, `discounts` contains the discount factor per round of every
memory of `robust`, and `budget` is the number of draft tokens per round.
"""

World = record(
    "World", rates="f8[:, :, ::1]", transition="f8[:, ::1]", initial="f8[::1]", every_draft="b1"
)
"""The simulated environment.

`rates` [p, r, i] is the acceptance rate of client i in regime r during round p. The rounds are
repeated periodically. `transition` and `initial` contain the cumulative probabilities of the next
and the first regime. Each client changes its regime independently. `every_draft` tells whether the
verifier judges every draft, as in Eq. 3, or only those up to the first rejection.
"""


@helper
def power(base, exponent):
    """Return base ** exponent by repeated multiplication if the exponent is a small integer."""
    if exponent > 32.0 or exponent != np.floor(exponent):
        return base**exponent
    out = 1.0
    for _ in range(np.int64(exponent)):
        out *= base
    return out


@helper
def expected_goodput(alpha, drafts):
    """Return the expected goodput mu = 1 + alpha + ... + alpha^S of a client with S drafts."""
    if alpha < 0.99 and drafts > 16:
        return (1.0 - alpha ** (drafts + 1)) / (1.0 - alpha)
    total = 1.0
    term = 1.0
    for _ in range(drafts):
        term *= alpha
        total += term
    return total


@helper
def chance(rates, i, drafts):
    """Return the probability that client i's next draft is accepted if all previous drafts are.

    ``rates`` contains acceptance rates by client and position in the round. The last column
    also applies to all later positions.
    """
    return rates[i, min(drafts, rates.shape[1] - 1)]


@helper
def greedy(weights, rates, firsts, caps, left, drafts):
    """Allocate the remaining budget by Eq. 5, always to the draft with the largest marginal.

    The marginal of draft j is w times the probability that drafts 1..j are all accepted. The
    marginal of a client's first draft is w times its entry in ``firsts``. ``drafts`` contains the
    drafts allocated so far and is modified in place. Drafts without a gain are not allocated.
    Return the number of drafts that remain in the budget.
    """
    n = len(drafts)
    worth = np.empty(n)
    losses, clients = np.empty(n), np.empty(n, np.int64)  # a heap by gain, ties by client
    size = 0
    for i in range(n):
        if drafts[i] >= caps[i]:
            continue
        worth[i] = 1.0
        for j in range(drafts[i] + 1):
            worth[i] *= chance(rates, i, j)
        gain = weights[i] * (firsts[i] if drafts[i] == 0 else worth[i])
        if gain > 0.0:
            losses[size], clients[size] = -gain, i
            size += 1
    heapify(losses, clients, size)
    while left > 0 and size > 0:
        i = clients[0]
        drafts[i] += 1
        left -= 1
        worth[i] *= chance(rates, i, drafts[i])
        gain = weights[i] * worth[i]
        if drafts[i] >= caps[i] or gain <= 0.0:
            size = pop(losses, clients, size)
        else:
            place(losses, clients, size, 0, -gain, i)
    return left


@helper
def marginal_utility(weight, goodput, fairness):
    """Return the derivative of the weighted alpha-fair utility with respect to goodput."""
    if fairness == 1.0:
        return weight / goodput
    return weight * goodput ** (-fairness)


@helper
def drafts_for(rates, i, rate, behind):
    """Return the number of drafts allocated to client i to reach the client's minimum rate.

    This is the largest number whose expected goodput does not exceed the minimum rate, plus one if
    the client's goodput is below that rate. Drafts that would add a negligible fraction of the rate
    are left out, because their estimates are mostly noise.
    """
    drafts, goodput, term = 0, 1.0, chance(rates, i, 0)
    while goodput < rate and term > TELLING * rate and (behind or goodput + term <= rate):
        goodput += term
        drafts += 1
        term *= chance(rates, i, drafts)
    return drafts


@helper
def tried(silent):
    """Return the number of trial drafts, 0 or 1, after `silent` silent rounds of a client."""
    return int(silent & (silent - 1) == 0 or silent % LONGEST_SILENCE == 0)


@kernel("void(i8, f8[::1], f8[:, ::1], i8[:, ::1], i8, i8[::1])")
def allocate(policy, options, facts, counts, budget, drafts):
    """Write the number of draft tokens per client in the next round to ``drafts``, by Eq. 5.

    Clients marked ABSENT in ``drafts`` get no tokens.

    A client without drafts provides no evidence about its acceptance rate. Therefore `robust`
    values first drafts at the estimate plus OPTIMISM standard errors, and this bonus grows while a
    client is idle. Bad luck at the start thus has no permanent effect. A client without evidence
    for PROBE_AFTER rounds gets one draft before all other clients, and the longest idle client
    comes first. The waiting time is an eighth of PROBE_AFTER if the client has never been seen, two
    eighths if it has been seen once, and so on.

    Minimum rates are served next. A client gets the drafts whose expected goodput does not exceed
    the client's minimum rate, plus one while the client's goodput is below that rate. The number of
    drafts thus alternates between two values. The rest of the budget goes to all clients by Eq. 5.
    """
    n = len(drafts)
    left = budget
    weights = np.empty(n)
    firsts = np.empty(n)
    caps = np.empty(n, np.int64)
    due = np.zeros(n, np.int64)
    urgency = np.empty(n)
    promises = False
    rates = (
        facts[:, RATES : RATES + PLACES] if policy == ROBUST else facts[:, ESTIMATE : ESTIMATE + 1]
    )
    memories = (facts.shape[1] - MEMORIES) // 3
    for i in range(n):
        caps[i] = 0 if drafts[i] == ABSENT else counts[i, CAP]
        drafts[i] = 0
        if policy == ROBUST and counts[i, SILENT] >= PATIENCE:
            caps[i] = min(caps[i], tried(counts[i, SILENT]))
        weights[i] = marginal_utility(facts[i, WEIGHT], facts[i, GOODPUT], options[FAIRNESS])
        alpha = chance(rates, i, 0)
        firsts[i] = alpha
        if policy == ROBUST:
            trials = options[PRIOR_TESTED]
            for k in range(MEMORIES + memories, MEMORIES + 2 * memories):
                trials += facts[i, k] * facts[i, k + memories]
            surprise = alpha * (1.0 - alpha) / trials * (1.0 + np.log1p(counts[i, IDLE] / SOON))
            firsts[i] = min(alpha + options[OPTIMISM] * np.sqrt(surprise), 1.0)
        promise = facts[i, PROMISE]
        if promise > 1.0:
            promises = True
            due[i] = min(caps[i], drafts_for(rates, i, promise, facts[i, GOODPUT] < promise))
            urgency[i] = promise / facts[i, GOODPUT]
    after = np.int64(options[PROBE_AFTER])
    if policy == ROBUST and after > 0:
        while left > 0:
            chosen = -1
            for i in range(n):
                wait = min(after, after * (counts[i, SEEN] + 1) // 8)
                tried_now = counts[i, IDLE] >= wait and drafts[i] == 0 and caps[i] > 0
                if tried_now and (chosen < 0 or counts[i, IDLE] > counts[chosen, IDLE]):
                    chosen = i
            if chosen < 0:
                break
            drafts[chosen] = 1
            left -= 1
    if promises:
        left = greedy(urgency, rates, firsts, due, left, drafts)
    greedy(weights, rates, firsts, caps, left, drafts)


@helper
def learn(row, options, discounts, hits, tested, seen):
    """Update the counts and the weight of every memory of one client, and return the new estimate.

    A memory estimates the acceptance rate from discounted counts. Its weight (belief) reflects how
    well it has predicted. The weight is multiplied by the likelihood p^hits (1 - p)^misses that the
    memory predicted for the new evidence. Then the fraction 1 / (seen + 1) of the total weight is
    redistributed in the initial proportions. Another memory can therefore take over if the client
    changes. Initially, the weight of every memory is RELUCTANCE times the weight of the next longer
    memory.
    """
    K, prior_tested, reluctance = len(discounts), options[PRIOR_TESTED], options[RELUCTANCE]
    prior = row[PRIOR] * prior_tested
    accepted = row[MEMORIES : MEMORIES + K]
    trials = row[MEMORIES + K : MEMORIES + 2 * K]
    belief = row[MEMORIES + 2 * K :]
    total = 0.0
    start = 0.0
    for k in range(K):
        p = (accepted[k] + prior) / (trials[k] + prior_tested)
        p = min(max(p, LEAST), MOST)
        belief[k] = belief[k] * power(p, hits) * power(1.0 - p, tested - hits) + 1e-280
        total += belief[k]
        start = start * reluctance + 1.0
        accepted[k] = discounts[k] * accepted[k] + hits
        trials[k] = discounts[k] * trials[k] + tested
    share = 1.0 / (seen + 1.0)
    spread = share / start
    estimate = 0.0
    for k in range(K - 1, -1, -1):
        belief[k] = (1.0 - share) * belief[k] / total + spread
        spread *= reluctance
        estimate += belief[k] * (accepted[k] + prior) / (trials[k] + prior_tested)
    return min(max(estimate, LEAST), MOST)


@helper
def rate_at(row, j, before):
    """Return the estimated acceptance rate at position j of a round.

    The rate at the previous position, ``before``, serves as a prior that counts as LIKE_BEFORE
    tested drafts.
    """
    return (row[HITS + j] + LIKE_BEFORE * before) / (row[TRIALS + j] + LIKE_BEFORE)


@helper
def learn_places(row, before, accepted, missed, seen):
    """Update the acceptance counts and rates of one client by position in the round.

    The estimate of the client must already be updated. ``before`` is the previous estimate.

    If rounds differ in difficulty, the rounds with many accepted drafts are mostly easy ones. The
    acceptance probability, given that all previous drafts are accepted, then rises with the
    position, and no single rate describes the value of drafts. Rates that are estimated separately
    by position are consistent in any case. The weight of this hypothesis, BY_PLACE, depends on how
    well it has predicted the outcomes, like the weights of the memories.
    """
    alike, by_place = 1.0 - row[BY_PLACE], row[BY_PLACE]
    rate = before
    for j in range(accepted + missed):
        if j < PLACES:
            rate = rate_at(row, j, rate)
        right = j < accepted
        alike *= before if right else 1.0 - before
        by_place *= rate if right else 1.0 - rate
    share = 1.0 / (seen + 1.0)
    row[BY_PLACE] = (1.0 - share) * (by_place + 1e-280) / (
        alike + by_place + 2e-280
    ) + share * FIRST_BY_PLACE
    for j in range(accepted + missed):
        at = min(j, PLACES - 1)
        row[HITS + at] += j < accepted
        row[TRIALS + at] += 1.0
    rate = believed = row[ESTIMATE]
    for j in range(PLACES):
        if row[TRIALS + j] > 0.0:
            rate = rate_at(row, j, rate)
            believed = min(max(row[ESTIMATE] + row[BY_PLACE] * (rate - row[ESTIMATE]), LEAST), MOST)
        row[RATES + j] = believed


@helper
def value(row, drafts, accepted, beta):
    """Update a client's smoothed goodput by Eq. 4, with mu in place of the realised goodput.

    Earlier rounds were evaluated with earlier estimates. They are re-evaluated with the current
    estimate, to first order. This correction is scaled by the weight of the unlimited memory, that
    is, by how constant the client has been. The result is multiplied by the ratio of realised to
    forecast tokens, because mu is biased if acceptance depends on the position or on the round.
    """
    alpha = row[ESTIMATE]
    goodput = term = powers = 1.0
    steepness = 0.0  # derivative of mu with respect to alpha
    for j in range(drafts):
        term *= row[RATES + min(j, PLACES - 1)]
        goodput += term
        steepness += (j + 1) * powers
        powers *= alpha
    row[MEAN] += beta * (goodput - row[MEAN])
    row[SLOPE] += beta * (steepness - row[SLOPE])
    row[ANCHOR] += beta * (steepness * alpha - row[ANCHOR])
    row[EXPECTED] += goodput
    row[REALISED] += accepted + 1.0
    account = (row[REALISED] + FORETOLD) / (row[EXPECTED] + FORETOLD)
    row[GOODPUT] = max(1.0, (row[MEAN] + row[-1] * (alpha * row[SLOPE] - row[ANCHOR])) * account)


@kernel("void(i8, f8[::1], f8[::1], f8[:, ::1], i8[:, ::1], i8[::1], i8[::1], f8[::1], f8[::1])")
def observe(policy, options, discounts, facts, counts, drafts, accepted, hits, tested):
    """Update ``facts`` and ``counts`` in place with the outcome of a round.

    ``drafts`` contains the number of drafts per client. ABSENT clients are skipped, and for UNHEARD
    clients only the number of silent rounds is updated. ``accepted`` contains the number of drafts
    accepted before the first rejection. The evidence on the acceptance rates is that ``hits`` out
    of ``tested`` drafts were accepted.
    """
    for i in range(len(drafts)):
        row, count = facts[i], counts[i]
        if drafts[i] == UNHEARD:
            count[SILENT] += 1
        if drafts[i] < 0:
            continue
        is_evidence = tested[i] > 0.0
        count[SILENT] = 0
        count[SEEN] += is_evidence
        count[IDLE] = 0 if is_evidence else count[IDLE] + 1
        count[ROUNDS] += 1
        if policy == GRADIENT:
            eta, beta = options[LEARNING], options[SMOOTHING]
            if is_evidence:  # Eq. 3, which does not apply to a client without drafts
                row[ESTIMATE] = (1.0 - eta) * row[ESTIMATE] + eta * (hits[i] / tested[i])
            row[GOODPUT] = (1.0 - beta) * row[GOODPUT] + beta * (accepted[i] + 1.0)  # Eq. 4
        else:
            if is_evidence:
                before, seen, missed = row[ESTIMATE], count[SEEN], tested[i] > accepted[i]
                row[ESTIMATE] = learn(row, options, discounts, hits[i], tested[i], seen)
                learn_places(row, before, accepted[i], np.int64(missed), seen)
            value(row, drafts[i], accepted[i], max(options[SMOOTHING], 1.0 / count[ROUNDS]))


@helper
def spread(counts, budget, stream, drafts):
    """Write a random allocation to ``drafts``.

    Each draft of the budget goes to a client drawn uniformly. The draft is lost if the client has
    already reached its cap.
    """
    drafts[:] = 0
    for _ in range(budget):
        stream += GOLDEN
        i = np.int64(uniform(stream) * len(drafts))
        if drafts[i] < counts[i, CAP]:
            drafts[i] += 1


@kernel(
    "void(Scheduling, World, f8[:, ::1], i8[:, ::1], u8, i8, i8[::1], i8[:, :, ::1], f8[:, :, ::1],"
    " f8[:, :, ::1])"
)
def simulate(scheduling, world, facts, counts, key, first, checkpoints, record, expected, realised):
    """Simulate runs and sum each client's goodput up to each checkpoint.

    The runs are numbered first, first + 1, and so on. ``facts`` and ``counts`` contain the initial
    information about the clients. ``checkpoints`` contains increasing numbers of rounds. The sums
    are written to ``expected`` and ``realised``, with shape (runs, checkpoints, N). The allocations
    are written to ``record``, with shape (runs, rounds, N), unless it is empty.
    """
    policy, budget, rates, initial = (
        scheduling.policy,
        scheduling.budget,
        world.rates,
        world.initial,
    )
    n = len(facts)
    drafts = np.empty(n, np.int64)
    accepted = np.empty(n, np.int64)
    hits = np.empty(n)
    tested = np.empty(n)
    regimes = np.empty(n, np.int64)
    sums = np.empty((2, n))
    for r in range(len(expected)):
        run = mixed(key + np.uint64(first + r + 1) * GOLDEN)
        other = mixed(run ^ np.uint64(0x5851F42D4C957F2D))  # for regimes and random allocations
        known, counted = facts.copy(), counts.copy()
        sums[:] = 0.0
        for i in range(n):
            regimes[i] = pick(initial, uniform(other + np.uint64(i + 1) * GOLDEN))
        point = 0
        for t in range(checkpoints[-1]):
            stage = t % len(rates)
            if policy == FIXED:
                for i in range(n):
                    drafts[i] = min(budget // n, counts[i, CAP])
            elif policy == RANDOM:
                spread(counts, budget, mixed(other + np.uint64((t + 1) * (n + 1)) * GOLDEN), drafts)
            else:
                drafts[:] = 0
                allocate(policy, scheduling.options, known, counted, budget, drafts)
            for i in range(n):
                luck = np.uint64(t * n + i + 1) * GOLDEN
                alpha = rates[stage, regimes[i], i]
                stream = mixed(run + luck)
                accepted[i] = right = 0
                for j in range(drafts[i]):
                    stream += GOLDEN
                    right += uniform(stream) < alpha
                    if right > j:  # all drafts so far
                        accepted[i] = right
                if world.every_draft:
                    hits[i], tested[i] = right, drafts[i]
                else:
                    hits[i], tested[i] = accepted[i], min(accepted[i] + 1, drafts[i])
                sums[0, i] += expected_goodput(alpha, drafts[i])
                sums[1, i] += accepted[i] + 1.0
                if len(initial) > 1:
                    regimes[i] = pick(world.transition[regimes[i]], uniform(mixed(other + luck)))
            if policy in (ROBUST, GRADIENT):
                observe(
                    policy,
                    scheduling.options,
                    scheduling.discounts,
                    known,
                    counted,
                    drafts,
                    accepted,
                    hits,
                    tested,
                )
            if len(record) > 0:
                record[r, t] = drafts
            if t + 1 == checkpoints[point]:
                expected[r, point] = sums[0]
                realised[r, point] = sums[1]
                point += 1
