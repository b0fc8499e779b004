"""Column indices of the tables that store a fair-goodput scheduler's information about its clients.

``facts`` (float): WEIGHT, ESTIMATE (alpha-hat), GOODPUT (X), PRIOR (the first estimate), PROMISE
(minimum rate). If rates are per second: DRAFT_SECONDS (of a token), NETWORK_SECONDS and PRESSURE
(logarithm of the factor that a promise applies to the weight). For `robust` only: MEAN, SLOPE and
ANCHOR (running means of mu, of its derivative and of the derivative times the estimate); REALISED
and EXPECTED (total tokens, and their forecast). BY_PLACE is the weight of the hypothesis that
acceptance depends on the position in a round. PLACES columns starting at each of HITS, TRIALS and
RATES contain the accepted drafts, the tested drafts and the rate by position; the last position
also covers all later positions. Three groups of K columns, starting at MEMORIES, contain the
accepted drafts, the tested drafts and the weight of every memory, with the unlimited memory last.

``counts`` (int): CAP, IDLE (rounds since the last evidence), ROUNDS (number of rounds over which
goodput is averaged, up to the horizon), SEEN (rounds with evidence), SILENT (consecutive rounds
reported without this client).

``options``, a single row for all clients: FAIRNESS, SMOOTHING (beta: constant for `gradient`, the
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
"""Range of the acceptance rates that `robust` estimates.

Because of these limits, no client is regarded as hopeless or as perfect.
"""

FIRST_BY_PLACE, LIKE_BEFORE = 0.03, 16.0
"""Parameters of the hypothesis that acceptance depends on the position in a round.

The first is the initial weight of the hypothesis. The second is the number of tested drafts to
which the rate at the previous position is equivalent.
"""

SOON = 16.0
"""Time scale of the growth of optimism, in idle rounds.

After about this number of rounds without evidence, the optimism about a client grows with the
square root of the logarithm of the number of such rounds.
"""

ABSENT, UNHEARD = -1, -2
"""Markers that replace a client's number of drafts.

ABSENT marks a client that was not in a round. UNHEARD marks a client that was in the round but has
not reported.
"""

PATIENCE, LONGEST_SILENCE = 8, 64
"""Limits for clients that do not report, in rounds.

After PATIENCE silent rounds, a client's drafts go to other clients. LONGEST_SILENCE is the maximum
number of silent rounds between two trials. A silent client is tried with one draft after 8, 16, 32
and 64 silent rounds, and then every 64 rounds. A client that merely loses every fifth report is
almost never considered gone.
"""

TELLING = 0.005
"""Minimum contribution of a draft to a client's minimum rate, as a fraction of that rate.

Drafts that add less are not allocated to reach the minimum rate.
"""

FORETOLD = 200.0
"""Initial value of a client's realised tokens and of its forecast tokens.

Because the two totals start equal, their ratio changes slowly at first.
"""
