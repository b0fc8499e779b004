"""Kernels for the event-driven simulation of a placement plan with continuous batching.

A machine is a verifier unit or a draft unit. Verifier units have the lowest numbers. When a pass of
a machine ends, the next pass starts and serves all clients that are waiting there. The random
numbers of a client depend only on the key and the index of the client.
"""

import numpy as np

from specopt.solvers.kernels.heap import pop, push
from specopt.solvers.kernels.kernel import helper, kernel, record, rows
from specopt.solvers.kernels.random import GOLDEN, draw, draw_below, mixed
from specopt.solvers.placement.kernels.units import largest

EDGE = 1e-12
"""Relative time tolerance for joining a pass.

A client that arrives within this tolerance after the end of a pass still joins the pass that starts
then. Rounding errors therefore do not affect the result.
"""

PlacedMachine = rows(
    "PlacedMachine",
    first="i8",
    last="i8",
    beside_first="i8",
    beside_last="i8",
    beside_passes="i8",
    beside_tokens="i8",
    slowdown="f8",
    verifies="b1",
)
"""A machine, with the durations of its passes.

Rows `first` to `last` of `pieces` are the linear pieces of the machine's pass duration, and rows
`beside_first` to `beside_last` are the pieces of the drafter next to the machine. This drafter runs
`beside_passes` passes per round, with `beside_tokens` tokens per sequence in each pass. Reserved
time multiplies the duration of a pass by `slowdown`.
"""

PlacedEntry = rows(
    "PlacedEntry",
    new_tokens="i8",
    context_tokens="i8",
    first_trip="i8",
    trips="i8",
    uplink="f8",
    drafting="f8",
    ahead="f8",
    overlap="b1",
    first_chance="i8",
    chances="i8",
    draft_passes="i8",
    draft_tokens="i8",
    spread="f8",
)
"""A group of identical clients, with the data that determine their rounds.

The fields are the tokens per verification pass, the context, the range of round-trip times in the
plan's `trips`, and the durations of the uplink, of drafting on the device and of drafting ahead.
From `first_chance` on, the plan's `chances` contain the probabilities that at least 1, 2, ...
drafts are accepted. `draft_passes` is the number of passes on a draft unit, each with
`draft_tokens` tokens. The first arrivals lie between 0 and `spread`. Durations are in seconds.
"""

PlacedClient = rows(
    "PlacedClient",
    entry="i8",
    verifier="i8",
    drafter="i8",
    at="i8",
    left="i8",
    next="i8",
    sent="f8",
    half="f8",
)
"""A client, with its current state.

`entry` is the client's group. `verifier` is the machine that verifies, and `drafter` is the machine
that drafts (-1 if none). `at` is the machine where the client is or to which it travels. `left` is
the number of remaining passes on the client's draft unit, and `next` is the next client in the same
queue. `sent` is the time until which the client's device drafts, and `half` is half of the client's
round-trip time, both in seconds.
"""

PlacedPlan = record(
    "PlacedPlan",
    machines="PlacedMachine[::1]",
    entries="PlacedEntry[::1]",
    pieces="f8[:, ::1]",
    trips="f8[::1]",
    chances="f8[::1]",
    clients="PlacedClient[::1]",
)
"""The machines and clients of a plan. The clients are in their initial state."""


@helper
def batch_seconds(plan, clients, machine, j):
    """Return the duration of a machine's pass, in seconds.

    The clients of the pass are a linked list that starts at client j.
    """
    b, m, c = 0, 0, 0
    while j >= 0:
        e = plan.entries[clients[j].entry]
        b += 1
        m += e.new_tokens if machine.verifies else e.draft_tokens
        c += e.context_tokens
        j = clients[j].next
    seconds = largest(plan.pieces[machine.first : machine.last], b, m, c)
    if machine.beside_passes > 0:
        seconds += machine.beside_passes * largest(
            plan.pieces[machine.beside_first : machine.beside_last], b, b * machine.beside_tokens, c
        )
    return seconds * machine.slowdown


@helper
def verified(plan, e, streams, j, one, now):
    """Draw the number of accepted drafts of client j and the client's next round-trip time.

    Return the number of new tokens, and the time at which the client reaches its next machine.
    """
    luck = draw(streams, j)
    held = 0
    while held < e.chances and luck < plan.chances[e.first_chance + held]:
        held += 1
    one.half = 0.5 * plan.trips[e.first_trip + draw_below(streams, j, e.trips)]
    back = now + one.half
    tokens = min(held + 1, e.new_tokens)
    if e.draft_passes > 0:
        return tokens, back
    if e.overlap and held == e.new_tokens:
        one.sent = max(back, one.sent + e.ahead)
    else:
        one.sent = back + e.drafting
    return tokens, one.sent + e.uplink + one.half


@kernel("void(u8, PlacedPlan, f8, f8, i8[::1], i8[::1], f8[::1])")
def play(key, plan, begin, end, rounds, tokens, busy):
    """Simulate a plan from time 0 to `end`.

    From time `begin` on, the rounds and tokens of every entry and the busy time of every machine
    are counted. All times are in seconds.
    """
    clients, machines = plan.clients.copy(), len(plan.machines)
    n = len(clients)
    moments, numbers = np.empty(n + machines), np.empty(n + machines, np.int64)
    size = 0
    streams = np.empty(n, np.uint64)
    waiting, taken = np.full(machines, -1), np.full(machines, -1)  # linked lists of clients
    for j in range(n):
        streams[j] = mixed(key + np.uint64(j + 1) * GOLDEN)
        moment = plan.entries[clients[j].entry].spread * draw(streams, j)
        size = push(moments, numbers, size, moment, machines + j)
    touched, marked, count = np.empty(machines, np.int64), np.zeros(machines, np.bool_), 0
    while size > 0 and moments[0] <= end:
        now, number = moments[0], numbers[0]
        size = pop(moments, numbers, size)
        if number >= machines:
            j = number - machines
            s = clients[j].at
            clients[j].next, waiting[s] = waiting[s], j
        else:
            s = number
            j, taken[s] = taken[s], -1
            while j >= 0:
                one = clients[j]
                following, i = one.next, one.entry
                e = plan.entries[i]
                if plan.machines[s].verifies:
                    gain, moment = verified(plan, e, streams, j, one, now)
                    if now >= begin:
                        rounds[i] += 1
                        tokens[i] += gain
                    if one.drafter >= 0:
                        one.at, one.left = one.drafter, e.draft_passes
                else:
                    one.left -= 1
                    moment = now
                    if one.left == 0:
                        one.at, moment = one.verifier, now + one.half
                if moment <= now:
                    one.next, waiting[one.at] = waiting[one.at], j
                    if not marked[one.at]:
                        touched[count], marked[one.at], count = one.at, True, count + 1
                else:
                    size = push(moments, numbers, size, moment, machines + j)
                j = following
        if not marked[s]:
            touched[count], marked[s], count = s, True, count + 1
        if size > 0 and moments[0] <= now * (1.0 + EDGE):
            continue
        for s in touched[:count]:
            marked[s] = False
            if taken[s] < 0 and waiting[s] >= 0:
                taken[s], waiting[s] = waiting[s], -1
                seconds = batch_seconds(plan, clients, plan.machines[s], taken[s])
                busy[s] += max(0.0, min(end, now + seconds) - max(begin, now))
                size = push(moments, numbers, size, now + seconds, s)
        count = 0
