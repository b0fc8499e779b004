"""Fair goodput, online: one round of the scheduler, and whole simulated runs that take the same
decisions.

Clients i = 1..N (letters of paper 5: S draft tokens, alpha acceptance rate, X smoothed goodput, C
budget); what the scheduler knows about them is in the tables of `fair_goodput_columns`. The fate of
draft j of client i in round t of run r depends on (key, r, t, i, j) and on nothing else, so all
policies meet the same luck.
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
"""The policy, its options, the factor per round of every memory of `robust`, and the draft tokens
of a round.
"""

World = record(
    "World", rates="f8[:, :, ::1]", transition="f8[:, ::1]", initial="f8[::1]", every_draft="b1"
)
"""Acceptance rates [p, r, i] of client i in regime r during round p, a path that is repeated.
Cumulative rows of every client's own changes of regime, and its first regime. Whether the verifier
learns the fate of every draft, as in Eq. 3, or up to the first rejection only."""


@helper
def power(base, exponent):
    """Return base ** exponent, fast for the small whole exponents that counts are."""
    if exponent > 32.0 or exponent != np.floor(exponent):
        return base**exponent
    out = 1.0
    for _ in range(np.int64(exponent)):
        out *= base
    return out


@helper
def expected_goodput(alpha, drafts):
    """Return mu = 1 + alpha + ... + alpha^S; right at alpha = 1 too."""
    if alpha < 0.99 and drafts > 16:
        return (1.0 - alpha ** (drafts + 1)) / (1.0 - alpha)
    total = 1.0
    term = 1.0
    for _ in range(drafts):
        term *= alpha
        total += term
    return total


@helper
def chance(alphas, rates, i, drafts):
    """Return the chance that one more draft of a client is accepted if its drafts before are:
    ``rates`` by place.
    """
    places = rates.shape[1]
    return alphas[i] if places == 0 else rates[i, min(drafts, places - 1)]


@helper
def slope(alpha, drafts):
    """Return the derivative of mu in alpha."""
    total = 0.0
    term = 1.0
    for j in range(1, drafts + 1):
        total += j * term
        term *= alpha
    return total


@helper
def greedy(weights, alphas, rates, firsts, caps, left, drafts):
    """Give out what is left of the budget by Eq. 5: always the draft with the largest marginal.

    Draft j of a client is worth w times the chance that all up to it are accepted, alpha^j if
    ``rates`` has no places. Its first one is worth at least w times the client's entry in
    ``firsts``. ``drafts`` holds what clients have already and is modified in place. Drafts that
    gain nothing are not given. Return what is left then.
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
            worth[i] *= chance(alphas, rates, i, j)
        gain = weights[i] * (firsts[i] if drafts[i] == 0 else worth[i])
        if gain > 0.0:
            losses[size], clients[size] = -gain, i
            size += 1
    heapify(losses, clients, size)
    while left > 0 and size > 0:
        i = clients[0]
        drafts[i] += 1
        left -= 1
        worth[i] *= chance(alphas, rates, i, drafts[i])
        gain = weights[i] * worth[i]
        if drafts[i] >= caps[i] or gain <= 0.0:
            size = pop(losses, clients, size)
        else:
            place(losses, clients, size, 0, -gain, i)
    return left


@helper
def marginal_utility(weight, goodput, fairness):
    """Return the gradient of the alpha-fair utility at a goodput."""
    if fairness == 1.0:
        return weight / goodput
    return weight * goodput ** (-fairness)


@helper
def drafts_for(alphas, rates, i, rate, behind):
    """Return the most drafts whose expected goodput does not exceed a rate, and one more if the
    client is behind.

    Drafts that would add next to nothing are left out: what an estimate says of them is noise.
    """
    drafts, goodput, term = 0, 1.0, chance(alphas, rates, i, 0)
    while goodput < rate and term > TELLING * rate and (behind or goodput + term <= rate):
        goodput += term
        drafts += 1
        term *= chance(alphas, rates, i, drafts)
    return drafts


@helper
def tried(silent):
    """Return how many drafts a client gets after a given number of silent rounds."""
    return int(silent & (silent - 1) == 0 or silent % LONGEST_SILENCE == 0)


@kernel("void(i8, f8[::1], f8[:, ::1], i8[:, ::1], i8, i8[::1])")
def allocate(policy, options, facts, counts, budget, drafts):
    """Write the draft tokens of the next round into ``drafts``: Eq. 5. Clients that are ABSENT
    there get none.

    Whoever drafts nothing can teach nothing. So `robust` values first drafts at the estimate plus
    OPTIMISM standard errors, and more the longer a client is idle: a bad start is not for ever. A
    client without evidence for PROBE_AFTER rounds gets one draft ahead of the others, the longest
    idle first. It takes an eighth of that if the client has never been seen, two eighths if once,
    and so on.

    Then promises are kept. A client with a promised rate gets the drafts that do not exceed it, and
    one more while it is behind, so that it alternates between two numbers of drafts around its
    rate.
    """
    n = len(drafts)
    left = budget
    weights = np.empty(n)
    firsts = np.empty(n)
    caps = np.empty(n, np.int64)
    due = np.zeros(n, np.int64)
    urgency = np.empty(n)
    promises = False
    alphas = facts[:, ESTIMATE]
    rates = facts[:, RATES : RATES + PLACES if policy == ROBUST else RATES]
    memories = (facts.shape[1] - MEMORIES) // 3
    for i in range(n):
        caps[i] = 0 if drafts[i] == ABSENT else counts[i, CAP]
        drafts[i] = 0
        if policy == ROBUST and counts[i, SILENT] >= PATIENCE:
            caps[i] = min(caps[i], tried(counts[i, SILENT]))
        weights[i] = marginal_utility(facts[i, WEIGHT], facts[i, GOODPUT], options[FAIRNESS])
        alpha = chance(alphas, rates, i, 0)
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
            due[i] = min(
                caps[i], drafts_for(alphas, rates, i, promise, facts[i, GOODPUT] < promise)
            )
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
        left = greedy(urgency, alphas, rates, firsts, due, left, drafts)
    greedy(weights, alphas, rates, firsts, caps, left, drafts)


@helper
def learn(row, discounts, hits, tested, seen, prior_tested, reluctance):
    """Update one client's counts for every memory and the belief in each; return the new estimate.

    A memory is believed by how well it has foretold: its belief is multiplied by the likelihood
    p^hits (1 - p)^misses that it gave to the evidence before seeing it. Then a share 1 / (seen + 1)
    of all belief is spread as at the start, so that another memory can take over when the client
    changes. The start gives every memory RELUCTANCE times as much as the next longer one.
    """
    K = len(discounts)
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
    """Return the rate counted at a place, where that of the place before counts for some drafts."""
    return (row[HITS + j] + LIKE_BEFORE * before) / (row[TRIALS + j] + LIKE_BEFORE)


@helper
def learn_places(row, before, accepted, missed, seen):
    """Update what is known of acceptance by place, and its rates, the estimate being up to date; it
    was ``before``.

    Where rounds are easy or hard, those that get far are the easy ones. The chance to go on from a
    place, given that all before was accepted, rises with the place; no single number gives the
    worth of drafts. Counted place by place it is consistent whatever the rounds are. It is believed
    as memories are: by how well it has foretold what came.
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


@kernel("i8(i8[::1], i8[::1], i8[::1])", nogil=False)
def first_wrong(drafts, accepted, tested):
    """Return the first client whose counts cannot be, -1 if there is none.

    Tested are the accepted drafts and the first rejected one, if any. Negative drafts: nothing is
    known of the client.
    """
    for i in range(len(drafts)):
        if drafts[i] >= 0 and not (
            0 <= accepted[i] <= tested[i] <= min(accepted[i] + 1, drafts[i])
        ):
            return i
    return -1


@helper
def value(row, drafts, accepted, beta):
    """Update what a client has got so far, in expectation (Eq. 4 with mu in place of the realised
    goodput).

    Earlier rounds were valued at earlier estimates. As far as the endless memory is believed, that
    is, as far as the client has always been the same, they are valued again at today's, to first
    order. All of it is measured by what the client really got: where acceptance depends on the
    position, or on the round, mu is not what is expected.
    """
    alpha = row[ESTIMATE]
    steepness = slope(alpha, drafts)
    goodput = term = 1.0
    for j in range(drafts):
        term *= row[RATES + min(j, PLACES - 1)]
        goodput += term
    row[MEAN] += beta * (goodput - row[MEAN])
    row[SLOPE] += beta * (steepness - row[SLOPE])
    row[ANCHOR] += beta * (steepness * alpha - row[ANCHOR])
    row[EXPECTED] += goodput
    row[REALISED] += accepted + 1.0
    account = (row[REALISED] + FORETOLD) / (row[EXPECTED] + FORETOLD)
    row[GOODPUT] = max(1.0, (row[MEAN] + row[-1] * (alpha * row[SLOPE] - row[ANCHOR])) * account)


@kernel("void(i8, f8[::1], f8[::1], f8[:, ::1], i8[:, ::1], i8[::1], i8[::1], f8[::1], f8[::1])")
def observe(policy, options, discounts, facts, counts, drafts, accepted, hits, tested):
    """Learn from a round; modified in place: ``facts`` and ``counts``.

    ``drafts``: what each client drafted; of one that is ABSENT or UNHEARD nothing is learned but
    that it is silent. ``accepted``: drafts accepted before the first rejection. ``hits`` of
    ``tested``: the evidence on the rate.
    """
    for i in range(len(drafts)):
        if drafts[i] == UNHEARD:
            counts[i, SILENT] += 1
        if drafts[i] < 0:
            continue
        counts[i, SILENT] = 0
        if tested[i] > 0.0:
            counts[i, SEEN] += 1
            counts[i, IDLE] = 0
        else:
            counts[i, IDLE] += 1
        counts[i, ROUNDS] += 1
        if policy == GRADIENT:
            if tested[i] > 0.0:  # Eq. 3, which says nothing about a client without drafts
                facts[i, ESTIMATE] = (1.0 - options[LEARNING]) * facts[i, ESTIMATE] + options[
                    LEARNING
                ] * (hits[i] / tested[i])
            beta = options[SMOOTHING]
            facts[i, GOODPUT] = (1.0 - beta) * facts[i, GOODPUT] + beta * (
                accepted[i] + 1.0
            )  # Eq. 4
        else:
            if tested[i] > 0.0:
                before = facts[i, ESTIMATE]
                facts[i, ESTIMATE] = learn(
                    facts[i],
                    discounts,
                    hits[i],
                    tested[i],
                    counts[i, SEEN],
                    options[PRIOR_TESTED],
                    options[RELUCTANCE],
                )
                learn_places(
                    facts[i],
                    before,
                    accepted[i],
                    np.int64(tested[i] > accepted[i]),
                    counts[i, SEEN],
                )
            value(
                facts[i], drafts[i], accepted[i], max(options[SMOOTHING], 1.0 / counts[i, ROUNDS])
            )


@helper
def spread(counts, budget, stream, drafts):
    """Write a random allocation: every draft of the budget to a client drawn evenly; above its cap
    it is lost.
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
    """Play runs first, first + 1, ... and sum up every client's expected and realised goodput until
    each checkpoint.

    ``facts``, ``counts``: what is known at the start. ``checkpoints``: rounds played, increasing.
    Filled: ``expected`` and ``realised``, shape (runs, points, N), and ``record`` (runs, rounds, N)
    with the allocations unless it is empty.
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
        other = mixed(run ^ np.uint64(0x5851F42D4C957F2D))  # regimes and random allocations
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
                run_length = -1
                right = 0
                for j in range(drafts[i]):
                    stream += GOLDEN
                    if uniform(stream) < alpha:
                        right += 1
                    elif run_length < 0:
                        run_length = j
                accepted[i] = drafts[i] if run_length < 0 else run_length
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
