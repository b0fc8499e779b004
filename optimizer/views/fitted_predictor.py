"""A fitted predictor and the performance of each stopping rule, as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console

from specopt.console.terminal import line, sentence, table, title


def print_fitted(found: dict[str, Any], out: Console) -> None:
    """Print the predictor, the rules and a verdict, given the JSON output of the command."""
    title(out, "rejection predictor: ", found["predictor"])
    line(
        out,
        "rounds",
        f"{found['rounds']:,}, a third of them held out; {found['dropped']:,} dropped as too short",
    )
    line(out, "longest draft", f"{found['problem']['max_draft_tokens']} tokens")
    line(
        out,
        "false alarms",
        f"{found['false_reject']:.1%} of accepted tokens are predicted rejected",
    )
    line(out, "misses", f"{found['false_accept']:.1%} of first rejections are predicted accepted")
    line(out, "area", f"{found['area']:.3f} under the curve")
    view = table("  rule", "model", "held-out rounds", "vs. the fixed window", left=1)
    for one in found["rules"]:
        low, high = one["gain_interval"]
        gain = (
            ""
            if one["method"] == "fixed-window"
            else f"{one['gain']:+.1%} ({low:+.1%} to {high:+.1%})"
        )
        speed = f"{one['held_out']:.4g} +- {one['standard_error']:.2g}"
        view.add_row(f"  {one['method']}", f"{one['model']:.4g} tokens/s", speed, gain)
    out.print(view)
    sentence(out, f"  {_verdict(found['rules'])}")


def _verdict(rules: Sequence[dict[str, Any]]) -> str:
    best = max(rules, key=lambda one: one["held_out"])
    belief = next(one for one in rules if one["method"] == "belief")
    if belief["gain_interval"][0] > 0.0:
        return (
            "stopping by belief is faster than the best fixed window on rounds not used for the fit"
        )
    if best["method"] == "fixed-window" or belief["gain_interval"][1] < 0.0:
        return "the best fixed window is the fastest rule on rounds not used for the fit: use it"
    return "no difference from the best fixed window is significant on rounds not used for the fit"
