"""Paper 3: Figures 3 and 4; what stands for what, and what is found, is in `paper_3_simulation`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from specopt.instances.drafts.softmax_pairs import OPT_VOCABULARY_SIZE
from specopt.models.fields import Floats
from specopt.reproductions.artefact import Artefact, Claim, Value
from specopt.reproductions.paper_3_simulation import (
    FIGURE_3_RESOLUTION,
    RESOLUTIONS,
    TEMPERATURES,
    UPLINKS,
    VERIFY_SECONDS,
    Laws,
    laws_at,
    throughput,
)
from specopt.reproductions.selection import Say
from specopt.views.canvas import COLOURS
from specopt.views.panels import Line, Panel, draw

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POSITIONS, REPLICATIONS = 18, 80
"""Per seed: pairs of distributions at every temperature, and runs of the heuristic."""

FIGURES = ("figure-3", "figure-4a", "figure-4b")
_COLOURS = {
    "dynamic Q-S": COLOURS[2], "myopic Q-S": COLOURS[5], "static Q-S": COLOURS[0], "static S-Q": COLOURS[1],
    "heuristic Q-S": COLOURS[6], "LLM": COLOURS[7], "Q-S": COLOURS[0], "S-Q": COLOURS[1], "SLM": COLOURS[6],
}  # fmt: skip
_MARKERS = {"LLM": "s", "S-Q": "^", "SLM": "v"}


def reproduce(names: Sequence[str], *, seeds: int, quick: bool, say: Say) -> Iterator[Artefact]:
    """Compute figures again, all from the same distributions; a seed is a set of them.

    Quick versions have two temperatures, few distributions and a small vocabulary: verdicts mean little then.
    """
    say("distributions at every temperature, and policies for both regimes")
    if quick:
        found = artefacts(temperatures=(0.5, 1.0), positions=12, vocabulary_size=3000, replications=50)
    else:
        found = artefacts(positions=POSITIONS * seeds, replications=REPLICATIONS * seeds)
    yield from (one for one in found if one.name in names)


def artefacts(
    *,
    temperatures: Sequence[float] = TEMPERATURES,
    positions: int = 90,
    vocabulary_size: int = OPT_VOCABULARY_SIZE,
    replications: int = 400,
    seed: int = 0,
) -> tuple[Artefact, Artefact, Artefact]:
    """Return Figures 3, 4(a) and 4(b).

    Parameters
    ----------
    temperatures
        Points of the axes, increasing.
    positions, vocabulary_size, seed
        Of the synthetic distributions.
    replications
        Of 1000 iterations each, for the heuristic; all other lines are analytic.
    """
    laws = [
        laws_at(temperature, positions=positions, vocabulary_size=vocabulary_size, seed=seed)
        for temperature in temperatures
    ]
    rows = {
        regime: [throughput(law, regime, vocabulary_size, replications, seed) for law in laws] for regime in UPLINKS
    }
    return _figure_3(laws), _figure_4("a", "low", rows), _figure_4("b", "high", rows)


def _figure_3(laws: Sequence[Laws]) -> Artefact:
    place = RESOLUTIONS.index(FIGURE_3_RESOLUTION)
    rows: list[dict[str, Value]] = [
        {
            "temperature": law.temperature,
            "error of Q-S": float(law.quantise_sample_errors[place].mean()),
            "error of S-Q": float(law.sample_quantise_errors[place].mean()),
            "error of SLM": law.draft_error,
            **{f"entropy of {name}": value for name, value in law.entropies.items()},
        }
        for law in laws
    ]
    lossless = max(float(law.quantise_sample_errors.max()) for law in laws)
    lossy = [float(law.sample_quantise_errors[place].mean()) for law in laws]
    spread = max(abs(law.entropies["Q-S"] - law.entropies["LLM"]) for law in laws)
    rising = all(all(a.entropies[name] < b.entropies[name] for a, b in pairwise(laws)) for name in laws[0].entropies)
    claims = (
        Claim(
            "Q-S has the LLM's distribution at every temperature and resolution", lossless < 1e-12,
            f"total variation at most {lossless:.1e}",
        ),
        Claim("S-Q has not", min(lossy) > 1e-3, f"total variation {min(lossy):.3f} to {max(lossy):.3f}"),
        Claim(
            "S-Q is worst at high temperatures", lossy[-1] == max(lossy) > lossy[0],
            f"{lossy[0]:.3f} at the lowest, {lossy[-1]:.3f} at the highest",
        ),
        Claim("the entropy of all methods increases with the temperature", rising),
        Claim("Q-S has the LLM's entropy", spread < 1e-9, f"within {spread:.1e} nats"),
    )  # fmt: skip
    return Artefact(
        name="figure-3",
        title="Distance from the LLM's distribution, and entropy per token, against the temperature",
        rows=rows,
        claims=claims,
        remark=(
            "Synthetic softmax distributions instead of OPT-13B and OPT-125M, and total variation instead of ROUGE-2, "
            f"which needs the text; resolution {FIGURE_3_RESOLUTION}."
        ),
        draw=lambda: _draw_3(rows),
    )


def _figure_4(letter: str, regime: str, rows: Mapping[str, Sequence[dict[str, Value]]]) -> Artefact:
    def column(name: str, at: str = regime) -> Floats:
        return np.array([row[name] for row in rows[at]], dtype=np.float64)

    dynamic, static, heuristic = column("dynamic Q-S"), column("static Q-S"), column("heuristic Q-S")
    gains = {at: column("dynamic Q-S", at) - column("static Q-S", at) for at in rows}
    lossy = column("static S-Q")
    claims = [
        Claim(
            "dynamic Q-S outperforms static Q-S at every temperature", bool((dynamic > static).all()),
            f"by {_range(100.0 * (dynamic / static - 1.0))} %",
        ),
        Claim(
            "dynamic Q-S outperforms the heuristic at every temperature", bool((dynamic > heuristic).all()),
            f"by {_range(100.0 * (dynamic / heuristic - 1.0))} %",
        ),
        Claim(
            "speculative decoding with Q-S outperforms the LLM alone", bool((static * VERIFY_SECONDS > 1.0).all()),
            f"static {_range(static * VERIFY_SECONDS)}, dynamic {_range(dynamic * VERIFY_SECONDS)} times",
        ),
        Claim(
            "the absolute gain of dynamic over static Q-S is smaller in the high-rate regime",
            bool((gains["high"] < gains["low"]).all()),
            f"low {_range(gains['low'])}, high {_range(gains['high'])} tokens/s",
        ),
        Claim(
            "dynamic Q-S outperforms static S-Q, too", bool((dynamic > lossy).all()),
            f"{_range(dynamic / lossy)} times its rate, where S-Q errs by {_range(column('error of S-Q'))}",
        ),
    ]  # fmt: skip
    return Artefact(
        name=f"figure-4{letter}",
        title=f"Token throughput against the temperature, {regime} rate ({UPLINKS[regime] / 1e6:g} Mbit/s on average)",
        rows=rows[regime],
        claims=claims,
        remark=(
            "Synthetic softmax distributions instead of OPT-13B and OPT-125M; the dynamic policy is the optimum, which "
            "a learned one can only approach. Most of the gain comes from adapting to the confidence, which a faster "
            "link does not make less worth while. S-Q, at the resolution that is best for static Q-S, is faster: "
            "drafts that the quantiser gave probability 0 are always accepted, and the output has another law."
        ),
        draw=lambda: _draw_4(rows[regime], f"{regime} rate"),
    )


def _draw_3(rows: Sequence[Mapping[str, Value]]) -> Figure:
    """Return the distance from the LLM's law on the left, the entropies on the right."""
    return draw(
        Panel(
            title="Loss of the LLM's distribution", x="temperature", y="total variation", y_range=(-0.01, None),
            marks=[_line(rows, f"error of {name}", name) for name in ("SLM", "S-Q", "Q-S")],
        ),
        Panel(
            title="Entropy", x="temperature", y="nats per token", y_range=(0.0, None),
            marks=[
                _line(rows, f"entropy of {name}", name, dashed=name == "Q-S") for name in ("LLM", "SLM", "S-Q", "Q-S")
            ],
        ),
        size=(8.6, 3.4),
    )  # fmt: skip


def _draw_4(rows: Sequence[Mapping[str, Value]], regime: str) -> Figure:
    """Return the throughput of every strategy against the temperature."""
    names = ("dynamic Q-S", "myopic Q-S", "static S-Q", "static Q-S", "heuristic Q-S", "LLM")
    lines = [_line(rows, name, name, dashed=name in ("myopic Q-S", "static S-Q")) for name in names]
    panel = Panel(
        title=f"Token throughput, {regime}", x="temperature", y="tokens per second", y_range=(0.0, None), marks=lines,
        legend="beside",
    )  # fmt: skip
    return draw(panel, size=(5.6, 3.6))


def _line(rows: Sequence[Mapping[str, Value]], column: str, name: str, *, dashed: bool = False) -> Line:
    x, y = ([row[key] for row in rows] for key in ("temperature", column))
    style = f"{_MARKERS.get(name, 'o')}{'--' if dashed else '-'}"
    return Line(x=x, y=y, label=name, style=style, size=4.0, colour=_COLOURS[name])


def _range(values: Floats) -> str:
    return f"{values.min():.3g} to {values.max():.3g}"
