"""The columns of the tables in which a scheduler of fair goodput keeps what it knows, a row per client.

``facts`` (float): WEIGHT, ESTIMATE (alpha-hat), GOODPUT (X), PRIOR (the estimate it began with); then, for `robust`
only, MEAN, SLOPE and ANCHOR (running means of mu, of its derivative and of the derivative times the estimate), and K
columns each, from MEMORIES on, of accepted drafts, tested drafts and belief, one for every memory, the last endless.

``counts`` (int): CAP, IDLE (rounds since the last evidence), ROUNDS (with this client), SEEN (rounds with evidence).

``options``, one row for all: FAIRNESS; SMOOTHING (beta: constant for `gradient`, the least step for `robust`);
LEARNING (eta); PRIOR_TESTED (drafts that the prior counts for); PROBE_AFTER (idle rounds; 0: never); OPTIMISM;
RELUCTANCE.
"""

ROBUST, GRADIENT, FIXED, RANDOM = range(4)
WEIGHT, ESTIMATE, GOODPUT, PRIOR, MEAN, SLOPE, ANCHOR, MEMORIES = range(8)
CAP, IDLE, ROUNDS, SEEN, COUNTS = range(5)
FAIRNESS, SMOOTHING, LEARNING, PRIOR_TESTED, PROBE_AFTER, OPTIMISM, RELUCTANCE, OPTIONS = range(8)

LEAST, MOST = 1e-4, 1.0 - 1e-6
"""Estimates of `robust` stay inside: no client is written off, none is free."""
