"""The columns of the tables in which a scheduler of fair goodput keeps what it knows, a row per
client.

``facts`` (float): WEIGHT, ESTIMATE (alpha-hat), GOODPUT (X), PRIOR (the first estimate), PROMISE
(least rate). Per second: DRAFT_SECONDS (of a token), NETWORK_SECONDS and PRESSURE (logarithm of
what a promise adds to the weight). For `robust` only: MEAN, SLOPE and ANCHOR (running means of mu,
of its derivative and of the derivative times the estimate); REALISED and EXPECTED (tokens in all,
and their forecast). BY_PLACE is the belief that acceptance depends on the place in a round. From
HITS, TRIALS and RATES on, PLACES columns each of accepted drafts, tested drafts and rate; the last
place also holds all beyond. From MEMORIES on, K columns each of accepted drafts, tested drafts and
belief, one for every memory, the last endless.

``counts`` (int): CAP, IDLE (rounds since the last evidence), ROUNDS (that goodput is averaged over,
up to the horizon), SEEN (rounds with evidence), SILENT (rounds in a row that were reported without
this client).

``options``, one row for all: FAIRNESS; SMOOTHING (beta: constant for `gradient`, the least step for
`robust`); LEARNING (eta); PRIOR_TESTED (drafts that the prior counts for); PROBE_AFTER (idle
rounds; 0: never); OPTIMISM; RELUCTANCE.
"""

ROBUST, GRADIENT, FIXED, RANDOM = range(4)
WEIGHT, ESTIMATE, GOODPUT, PRIOR, PROMISE, DRAFT_SECONDS, NETWORK_SECONDS, PRESSURE = range(8)
MEAN, SLOPE, ANCHOR, REALISED, EXPECTED, BY_PLACE = range(8, 14)
PLACES = 8
HITS, TRIALS, RATES, MEMORIES = range(14, 14 + 4 * PLACES, PLACES)
CAP, IDLE, ROUNDS, SEEN, SILENT, COUNTS = range(6)
FAIRNESS, SMOOTHING, LEARNING, PRIOR_TESTED, PROBE_AFTER, OPTIMISM, RELUCTANCE, OPTIONS = range(8)

LEAST, MOST = 1e-4, 1.0 - 1e-6
"""Estimates of `robust` stay inside: no client is written off, none is free."""

FIRST_BY_PLACE, LIKE_BEFORE = 0.03, 16.0
"""Belief at the start that acceptance depends on the place; tested drafts that the rate of the
place before counts for at a place."""

SOON = 16.0
"""Idle rounds from which on optimism about a client grows, with the root of the logarithm."""

ABSENT, UNHEARD = -1, -2
"""In place of the drafts of a client that was not in a round, and of one that was but has not
reported.
"""

PATIENCE, LONGEST_SILENCE = 8, 64
"""Silent rounds after which a client's drafts go to others: it is tried with one draft after 8, 16,
32 and 64 of them, then every 64. A client that merely loses every fifth report is next to never
taken for gone."""

TELLING = 0.005
"""A draft for the sake of a promise adds at least this share of the promised rate."""

FORETOLD = 200.0
"""Tokens as foretold that a client's account of goodput begins with."""
