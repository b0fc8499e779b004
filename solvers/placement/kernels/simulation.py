"""Event-driven simulation of a placement plan, with continuous batching on verifiers and draft
units.

A machine is a verifier unit or a draft unit; verifier units are numbered first. When a pass of a
machine ends, the next pass starts and serves all clients that are waiting there. The random numbers
of a client depend only on the key and the index of the client.
"""

import numpy as np

from specopt.solvers.kernels.heap import pop, push
from specopt.solvers.kernels.kernel import helper, kernel, record, rows
from specopt.solvers.kernels.random import GOLDEN, draw, draw_below, mixed
from specopt.solvers.placement.kernels.units import largest

EDGE = 1e-12
"""Relative time tolerance. A client that arrives this shortly after the end of a pass still joins
the next pass, so that rounding errors do not affect the result.
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
"""A machine.

Rows `first` to `last` of `pieces` are the linear pieces of its pass duration, and rows
`beside_first` to `beside_last` are the pieces of the drafter next to it. This drafter runs
`beside_passes` passes per round, with `beside_tokens` tokens per sequence in each. Reserved time
multiplies the duration of a pass by `slowdown`.
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
"""A group of identical clients.

The fields are the tokens per verification pass, the context, the range of round-trip times in
`trips`, and the durations of the uplink, of drafting on the device and of drafting ahead. The
`chances` are the probabilities that at least 1, 2, ... drafts are accepted. `draft_passes` is the
number of passes on a draft unit, each with `draft_tokens` tokens. The first arrivals lie between 0
and `spread`.
"""

PlacedPlan = record(
    "PlacedPlan",
    machines="PlacedMachine[::1]",
    entries="PlacedEntry[::1]",
    pieces="f8[:, ::1]",
    trips="f8[::1]",
    chances="f8[::1]",
    entry="i8[::1]",
    verifier="i8[::1]",
    drafter="i8[::1]",
)
"""Machines and clients of a plan.

`entry`, `verifier` and `drafter` contain, for every client, its entry, the machine that verifies,
and the machine that drafts; the latter is -1 if there is none.
"""


@helper
def batch_seconds(plan, s, first_client, link):
    """Return the duration, in seconds, of a pass of machine s for a linked list of clients."""
    machine = plan.machines[s]
    b, m, c = 0, 0, 0
    j = first_client
    while j >= 0:
        e = plan.entries[plan.entry[j]]
        b += 1
        m += e.new_tokens if machine.verifies else e.draft_tokens
        c += e.context_tokens
        j = link[j]
    seconds = largest(plan.pieces[machine.first : machine.last], b, m, c)
    if machine.beside_passes > 0:
        seconds += machine.beside_passes * largest(
            plan.pieces[machine.beside_first : machine.beside_last], b, b * machine.beside_tokens, c
        )
    return seconds * machine.slowdown


@helper
def verified(plan, streams, j, now, sent, half):
    """Draw the number of accepted drafts of client j and the next round-trip time.

    Return the number of new tokens, and the time at which the client reaches its next machine.
    """
    e = plan.entries[plan.entry[j]]
    luck = draw(streams, j)
    held = 0
    while held < e.chances and luck < plan.chances[e.first_chance + held]:
        held += 1
    half[j] = 0.5 * plan.trips[e.first_trip + draw_below(streams, j, e.trips)]
    back = now + half[j]
    tokens = min(held + 1, e.new_tokens)
    if e.draft_passes > 0:
        return tokens, back
    if e.overlap and held == e.new_tokens:
        sent[j] = max(back, sent[j] + e.ahead)
    else:
        sent[j] = back + e.drafting
    return tokens, sent[j] + e.uplink + half[j]


@kernel("void(u8, PlacedPlan, f8, f8, i8[::1], i8[::1], f8[::1])")
def play(key, plan, begin, end, rounds, tokens, busy):
    """Simulate a plan from time 0 to `end`.

    From `begin` on, count the rounds and tokens of every entry and the busy time of every machine,
    in seconds.
    """
    clients, machines = len(plan.entry), len(plan.machines)
    moments, numbers = np.empty(clients + machines), np.empty(clients + machines, np.int64)
    size = 0
    streams = np.empty(clients, np.uint64)
    at = plan.verifier.copy()  # the machine that a client is at or travels to
    sent, half = np.zeros(clients), np.zeros(clients)
    left = np.zeros(clients, np.int64)  # remaining passes on a draft unit
    link = np.full(clients, -1)
    waiting, taken = np.full(machines, -1), np.full(machines, -1)  # linked lists of clients
    running = np.zeros(machines, np.bool_)
    for j in range(clients):
        streams[j] = mixed(key + np.uint64(j + 1) * GOLDEN)
        size = push(
            moments,
            numbers,
            size,
            plan.entries[plan.entry[j]].spread * draw(streams, j),
            machines + j,
        )
    touched, marked, count = np.empty(machines, np.int64), np.zeros(machines, np.bool_), 0
    while size > 0 and moments[0] <= end:
        now, number = moments[0], numbers[0]
        size = pop(moments, numbers, size)
        if number >= machines:
            j = number - machines
            s = at[j]
            link[j], waiting[s] = waiting[s], j
        else:
            s = number
            running[s] = False
            j, taken[s] = taken[s], -1
            while j >= 0:
                following, i = link[j], plan.entry[j]
                if plan.machines[s].verifies:
                    gain, moment = verified(plan, streams, j, now, sent, half)
                    if now >= begin:
                        rounds[i] += 1
                        tokens[i] += gain
                    if plan.drafter[j] >= 0:
                        at[j], left[j] = plan.drafter[j], plan.entries[i].draft_passes
                else:
                    left[j] -= 1
                    moment = now
                    if left[j] == 0:
                        at[j], moment = plan.verifier[j], now + half[j]
                if moment <= now:
                    link[j], waiting[at[j]] = waiting[at[j]], j
                    if not marked[at[j]]:
                        touched[count], marked[at[j]], count = at[j], True, count + 1
                else:
                    size = push(moments, numbers, size, moment, machines + j)
                j = following
        if not marked[s]:
            touched[count], marked[s], count = s, True, count + 1
        if size > 0 and moments[0] <= now * (1.0 + EDGE):
            continue
        for k in range(count):
            s = touched[k]
            marked[s] = False
            if not running[s] and waiting[s] >= 0:
                taken[s], waiting[s], running[s] = waiting[s], -1, True
                seconds = batch_seconds(plan, s, taken[s], link)
                busy[s] += max(0.0, min(end, now + seconds) - max(begin, now))
                size = push(moments, numbers, size, now + seconds, s)
        count = 0
