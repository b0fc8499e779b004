"""Acceptance rates by draft position, with confidence limits.

The rate alpha_j is the probability that draft token j is accepted, given that all its predecessors
were accepted. A step with K draft tokens yields 1 + alpha_1 + alpha_1 alpha_2 + ... tokens on
average, where the first term is the token that the server adds. Engines report *cumulative* rates,
r_j = alpha_1 ... alpha_j. Their "draft acceptance rate" is the share of draft tokens that are
accepted, which differs from both alpha_j and r_j.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from specopt.models.arguments import array
from specopt.models.draft_shares import even_hazards, share_limits, yield_limits
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, Immutable, describe

LEVEL = 0.95
MAX_BOUNDED = 32
"""Maximum number of draft positions for which bounds on the mean number of tokens per step are
computed by linear programs.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class PositionAcceptance(Immutable):
    """Conditional acceptance rates by position, with confidence intervals if counts are known.

    Parameters
    ----------
    rates
        Conditional acceptance rates alpha_1, ..., alpha_J, each in [0, 1].
    lower
        Lower confidence limits for the rates. If counts are not known, these are the rates.
    upper
        Upper confidence limits for the rates. If counts are not known, these are the rates.
    reached
        Number of drafts that reached each position with all earlier tokens accepted, or None if the
        counts are not known.
    level
        Confidence level of each interval.
    tokens_lower
        Lower limits for the mean number of tokens per step with 0, 1, ..., J draft tokens. None
        means that only the limits implied by `lower` are known.
    tokens_upper
        Upper limits for the mean number of tokens per step with 0, 1, ..., J draft tokens. None
        means that only the limits implied by `upper` are known.
    extends
        Whether the last rate applies to all later positions as well, for example because there is
        one rate for all positions.
    notes
        Remarks about the measurements that are shown to the user.
    """

    rates: Floats
    lower: Floats
    upper: Floats
    reached: Floats | None = None
    level: float = LEVEL
    tokens_lower: Floats | None = None
    tokens_upper: Floats | None = None
    extends: bool = False
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("rates", "lower", "upper"):
            object.__setattr__(self, name, _rates(name, getattr(self, name)))
        if not len(self.lower) == len(self.rates) == len(self.upper):
            raise InvalidInput(
                f"lower, upper: expected {len(self.rates)} entries each, as in rates"
            )
        if (self.lower > self.rates).any() or (self.rates > self.upper).any():
            raise InvalidInput("lower, upper: expected lower <= rates <= upper")
        for name in ("tokens_lower", "tokens_upper"):
            tokens = getattr(self, name)
            if tokens is not None and (
                tokens.shape != (len(self.rates) + 1,) or not (tokens >= 1.0).all()
            ):
                raise InvalidInput(
                    f"{name}: expected mean numbers of tokens >= 1, one for each draft"
                    f" length from 0 to {len(self.rates)}"
                )

    @classmethod
    def constant(cls, rate: float, lower: float | None = None, upper: float | None = None) -> Self:
        """Build the object from one rate that applies to all positions. If `lower` or `upper` is
        None, the rate has no such confidence limit.
        """
        return cls(
            rates=np.array([rate]),
            lower=np.array([rate if lower is None else lower]),
            upper=np.array([rate if upper is None else upper]),
            extends=True,
        )

    @classmethod
    def exactly(cls, rates: ArrayLike, notes: tuple[str, ...] = ()) -> Self:
        """Build the object from conditional rates alpha_j, without confidence intervals."""
        known = _rates("acceptance_rates", rates)
        return cls(rates=known, lower=known, upper=known, notes=notes)

    @classmethod
    def from_cumulative(cls, rates: ArrayLike) -> Self:
        """Build the object from cumulative rates r_j, without confidence intervals. The conditional
        rates are alpha_j = r_j / r_(j-1).
        """
        cumulative = _rates("cumulative acceptance rates", rates)
        if (np.diff(cumulative) > 0.0).any():
            raise InvalidInput(
                "cumulative acceptance rates: rates must not increase with the position"
            )
        previous = np.concatenate(([1.0], cumulative[:-1]))
        known = previous > 0.0  # the rates end before a position that is never reached
        return cls.exactly(np.minimum(1.0, cumulative[known] / previous[known]))

    @classmethod
    def from_counts(
        cls,
        reached: ArrayLike,
        accepted: ArrayLike,
        level: float = LEVEL,
        notes: tuple[str, ...] = (),
    ) -> Self:
        """Build the object from counts, with exact binomial (Clopper-Pearson) intervals.

        Parameters
        ----------
        reached
            Number of drafts that reached each position with all earlier tokens accepted.
        accepted
            Number of these drafts in which the token at the position was accepted.
        level
            Confidence level of each interval.
        notes
            Remarks about the measurements that are shown to the user.

        Raises
        ------
        InvalidInput
            If counts are negative, `accepted` exceeds `reached`, or there are no drafts.
        """
        n, k = _counts(reached, accepted, level)
        lower, upper = _clopper_pearson(n, k, (1.0 - level) / 2.0)
        return cls(rates=k / n, lower=lower, upper=upper, reached=n, level=level, notes=notes)

    @classmethod
    def from_totals(
        cls,
        drafts: float,
        draft_tokens: float,
        accepted: ArrayLike,
        level: float = LEVEL,
        *,
        name: str = "counts",
    ) -> Self:
        """Build the object from an engine's totals over all drafts, with confidence intervals.

        If every draft has a token at every position, the totals determine every rate, as in
        `from_counts`. Otherwise, draft lengths differ, and the totals determine only the first
        rate. In this case, the intervals account for the sampling error and for all draft lengths
        that are independent of the tokens and consistent with the totals (module `draft_shares`).
        The estimated rates are assumed to be as equal as possible from position 2 on.

        Parameters
        ----------
        drafts
            Number of drafts, each of which has at least one token.
        draft_tokens
            Total number of draft tokens.
        accepted
            Number of accepted tokens at each position.
        level
            Confidence level of each interval.
        name
            Word or phrase for the totals, used in error messages.

        Raises
        ------
        InvalidInput
            If counts are negative, increase with the position, or contradict `draft_tokens`.
        """
        k = np.asarray(accepted, np.float64)
        if not drafts > 0.0:
            raise InvalidInput(f"{name}: expected at least one draft, got none")
        most = drafts * len(k)
        if not drafts - 0.5 <= draft_tokens <= most * (1.0 + 1e-9) + 0.5:
            raise InvalidInput(
                f"{name}: expected {drafts:.0f} to {most:.0f} tokens in {drafts:.0f} drafts of 1 to"
                f" {len(k)} tokens, got {draft_tokens:.0f}"
            )
        reached = np.concatenate(([drafts], k[:-1]))
        if draft_tokens >= most - 0.5:
            return cls.from_counts(reached, k, level)
        n, seen = _counts(reached, k, level)
        mean = max(1.0, draft_tokens / drafts)
        unseen = np.zeros(len(k) - len(n))
        # every interval depends on the lower limits of all rates, so the error probability of one
        # interval is divided among all positions
        lower, upper = _clopper_pearson(n, seen, (1.0 - level) / 2.0 / len(k))
        shares = share_limits(mean, np.concatenate((lower, unseen)))
        tokens = None
        if shares is None:
            least = seen / n
            most_shares = np.ones(len(n))
            rates = np.maximum(seen / n, seen[0] / n[0])
            cause = (
                "more tokens were accepted than is possible if lengths are independent of the"
                " tokens, for example because drafting stops at low confidence; any rate above the"
                " lower limits is possible"
            )
        else:
            least, most_shares = (share[: len(n)] for share in shares)
            rates = even_hazards(mean, np.concatenate((seen / n, unseen + 1.0)))[: len(n)]
            if len(k) <= MAX_BOUNDED:
                of_all = _clopper_pearson(
                    np.full(len(k), float(drafts)), k, (1.0 - level) / 2.0 / len(k)
                )
                tokens = yield_limits(mean, np.concatenate((lower, unseen)), *of_all)
            cause = (
                "the limits hold for all lengths that the totals allow if the lengths are"
                " independent of the tokens, for example chosen by the batch size; the estimates"
                " assume one rate from position 2 on"
            )
        lower = np.divide(lower, most_shares, out=np.zeros_like(lower), where=most_shares > 0.0)
        upper = np.minimum(1.0, np.divide(upper, least, out=np.ones_like(upper), where=least > 0.0))
        said = (lower > 0.0) | (upper < 1.0)  # otherwise, the position may never have been drafted
        size = len(said) if said.all() else int(said.argmin())
        note = (
            f"drafts had {mean:.3g} tokens on average, not all {len(k)}: {cause}; only statistics"
            " per request that distinguish draft lengths (acceptance_histogram_by_draft_length,"
            " per_step_drafted) identify every position"
        )
        return cls(
            rates=np.clip(rates, lower, upper)[:size],
            lower=lower[:size],
            upper=upper[:size],
            reached=np.divide(seen, rates, out=n.copy(), where=rates > 0.0)[:size],
            level=level,
            tokens_lower=None if tokens is None else tokens[0][: size + 1],
            tokens_upper=None if tokens is None else tokens[1][: size + 1],
            notes=(note,),
        )

    @property
    def has_limits(self) -> bool:
        """Whether any confidence limit differs from the corresponding rate."""
        return bool((self.lower < self.upper).any())

    @property
    def max_drafts(self) -> int | None:
        """Maximum draft length for which the rates are known, or None if there is no maximum."""
        return None if self.extends else len(self.rates)

    def expected_tokens(self, longest: int, which: str = "rates") -> Floats:
        """Return the mean number of tokens per step for drafts of 0, 1, ..., `longest` tokens.

        The means include the token that the server adds in each step. They increase with every
        rate, so limits for the rates imply limits for the means. The implied limits are wider than
        the confidence level requires. If tighter limits are known, they are used instead.

        Parameters
        ----------
        longest
            Maximum draft length.
        which
            ``"rates"`` for the means; ``"lower"`` or ``"upper"`` for a confidence limit.

        Raises
        ------
        InvalidInput
            If the rates at some positions up to `longest` are not known.
        """
        if not self.extends and longest > len(self.rates):
            raise InvalidInput(
                f"acceptance: rates are known for {len(self.rates)} draft positions, but {longest}"
                " are needed"
            )
        values: Floats = getattr(self, which)[:longest]
        values = np.append(
            values, np.full(longest - len(values), values[-1] if len(values) else 0.0)
        )
        tokens = np.concatenate(([1.0], 1.0 + np.cumsum(np.cumprod(values))))
        known = {"lower": self.tokens_lower, "upper": self.tokens_upper}.get(which)
        if known is None:
            return tokens
        mean = self.expected_tokens(longest)
        tighter = np.append(
            known[: longest + 1],
            known[-1] + tokens[len(known) :] - tokens[min(longest, len(known) - 1)],
        )
        ends = (tokens, mean) if which == "lower" else (mean, tokens)
        return np.asarray(np.clip(tighter, *ends), np.float64)

    def to_dict(self) -> dict[str, Any]:
        """Return the rates and limits as JSON-like data that the reader for acceptance files
        accepts.
        """
        data: dict[str, Any] = {
            "acceptance_rates": self.rates.tolist(),
            "lower": self.lower.tolist(),
            "upper": self.upper.tolist(),
            "level": self.level,
            "extends": self.extends,
        }
        for name in ("tokens_lower", "tokens_upper"):
            if (tokens := getattr(self, name)) is not None:
                data[name] = tokens.tolist()
        if self.reached is not None:
            data["reached"] = self.reached.tolist()
        if self.notes:
            data["notes"] = list(self.notes)
        return data


def _counts(reached: ArrayLike, accepted: ArrayLike, level: float) -> tuple[Floats, Floats]:
    """Check counts of drafts and accepted tokens by position, and return both arrays without the
    positions that no draft reached.
    """
    n = np.asarray(reached, np.float64)
    k = np.asarray(accepted, np.float64)
    if n.ndim != 1 or n.shape != k.shape or not len(n):
        raise InvalidInput("counts: expected one drafted and one accepted count per position")
    if not 0.0 < level < 1.0:
        raise InvalidInput(f"level: expected a confidence level in (0, 1), got {describe(level)}")
    if not (np.isfinite(n).all() and np.isfinite(k).all()) or (k < 0.0).any() or (n < k).any():
        raise InvalidInput("counts: expected 0 <= accepted <= drafted at every position")
    seen = int((n > 0.0).sum())
    if seen == 0 or not (n[:seen] > 0.0).all():
        raise InvalidInput("counts: expected at least one draft at the first position")
    return n[:seen], k[:seen]


def _clopper_pearson(n: Floats, k: Floats, tail: float) -> tuple[Floats, Floats]:
    """Return exact lower and upper confidence limits for binomial probabilities, given k successes
    in n trials. The true probability is outside each limit with probability at most `tail`.
    """
    from scipy.stats import beta

    lower = np.where(k > 0.0, beta.ppf(tail, np.maximum(k, 1e-9), n - k + 1.0), 0.0)
    upper = np.where(k < n, beta.ppf(1.0 - tail, k + 1.0, np.maximum(n - k, 1e-9)), 1.0)
    return np.minimum(lower, k / n), np.maximum(upper, k / n)


def _rates(name: str, values: ArrayLike) -> Floats:
    return array(name, values, 1, 0, 1, "numbers in [0, 1]")
