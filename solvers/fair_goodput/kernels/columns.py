"""Columns of the tables in which a fair-goodput scheduler stores its information, with one row per
client.

``facts`` (float): WEIGHT, ESTIMATE (alpha-hat), GOODPUT (X), PRIOR (the first estimate), PROMISE
(minimum rate). If rates are per second: DRAFT_SECONDS (of a token), NETWORK_SECONDS and PRESSURE
(logarithm of the factor that a promise applies to the weight). For `robust` only: MEAN, SLOPE and
ANCHOR (running means of mu, of its derivative and of the derivative times the estimate); REALISED
and EXPECTED (total tokens, and their forecast). BY_PLACE is the weight of the hypothesis that
acceptance depends on the place in a round. PLACES columns starting at each of HITS, TRIALS and
RATES contain the accepted drafts, the tested drafts and the rate by place; the last place also
covers all later places. Three groups of K columns, starting at MEMORIES, contain the accepted
drafts, the tested drafts and the weight of every memory, with the unlimited memory last.

``counts`` (int): CAP, IDLE (rounds since the last evidence), ROUNDS (number of rounds over which
goodput is averaged, up to the horizon), SEEN (rounds with evidence), SILENT (consecutive rounds
reported without this client).

``options``, one row for all clients: FAIRNESS, SMOOTHING (beta: constant for `gradient`, the
smallest step for `robust`), LEARNING (eta), OPTIMISM and RELUCTANCE. PRIOR_TESTED is the number of
drafts that the prior is equivalent to. PROBE_AFTER is a number of idle rounds (0: never).
"""

ROBUST, GRADIENT, FIXED, RANDOM = range(4)
WEIGHT, ESTIMATE, GOODPUT, PRIOR, PROMISE, DRAFT_SECONDS, NETWORK_SECONDS, PRESSURE = range(8)
MEAN, SLOPE, ANCHOR, REALISED, EXPECTED, BY_PLACE = range(8, 14)
PLACES = 8
HITS, TRIALS, RATES, MEMORIES = range(14, 14 + 4 * PLACES, PLACES)
CAP, IDLE, ROUNDS, SEEN, SILENT, COUNTS = range(6)
FAIRNESS, SMOOTHING, LEARNING, PRIOR_TESTED, PROBE_AFTER, OPTIMISM, RELUCTANCE, OPTIONS = range(8)

LEAST, MOST = 1e-4, 1.0 - 1e-6
"""Range of the estimates of `robust`, in which no client counts as hopeless and none as perfect."""

FIRST_BY_PLACE, LIKE_BEFORE = 0.03, 16.0
"""Initial weight of the hypothesis that acceptance depends on the place, and the number of tested
drafts to which the rate at the previous place is equivalent.
"""

SOON = 16.0
"""Number of idle rounds beyond which optimism about a client grows, with the square root of the
logarithm.
"""

ABSENT, UNHEARD = -1, -2
"""Values used instead of the drafts of a client that was not in a round, and of a client that
was in the round but has not reported.
"""

PATIENCE, LONGEST_SILENCE = 8, 64
"""Number of silent rounds after which a client's drafts go to other clients, and maximum number of
silent rounds between two trials.

A silent client is tried with one draft after 8, 16, 32 and 64 silent rounds, and then every 64
rounds. A client that merely loses every fifth report is almost never considered gone.
"""

TELLING = 0.005
"""Minimum share of a promised rate that a draft must add to be allocated for that promise."""

FORETOLD = 200.0
"""Number of tokens, realised exactly as forecast, with which a client's totals start."""
