"""Library problems of `draft-control`."""

from __future__ import annotations

from specopt.instances.draft_control import FAMILIES
from specopt.instances.library.recipe import Recipe, recipes_of

_recipe = recipes_of(FAMILIES)

RECIPES: tuple[Recipe, ...] = (
    *(
        _recipe("paper-3", f"{regime}-T{temperature:g}", "paper", 0, regime=regime, temperature=temperature)
        for regime in ("low", "high")
        for temperature in (0.7, 1.0, 1.3)
    ),
    _recipe("paper-3", "low-L0", "paper", 0, min_draft=0),
    _recipe("paper-3", "low-contrast100", "adversarial", 0, contrast=100.0),
    _recipe("paper-3", "high-static-link", "paper", 0, regime="high", contrast=1.0),
    _recipe("random", "S3", "small", states=3, resolutions=2, max_draft=5),
    _recipe("random", "S4", "small", states=4, resolutions=3, max_draft=4),
    _recipe("random", "S1", "small", states=1),
    _recipe("random", "S20", "paper"),
    _recipe("random", "S20-free-downlink", "paper", downlink_factor=0.0),
    _recipe("random", "S50-L200", "large", states=50, max_draft=200),
    _recipe("random", "S200", "large", states=200),
    _recipe("random", "S500", "large", states=500, resolutions=10),
    _recipe("alternating", "L1", "adversarial", 0),
    _recipe("alternating", "L0", "adversarial", 0, min_draft=0),
    _recipe("alternating", "L1-5", "small", 0, max_draft=5),
    _recipe("alternating", "contrast1e4", "adversarial", 0, slow_bits_per_second=5e3, fast_bits_per_second=5e7),
    _recipe("near-tie", "S3", "small", states=3, max_draft=4),
    _recipe("near-tie", "S6", "adversarial"),
    _recipe("near-tie", "S6-equal", "adversarial", spread=0.0),
    _recipe("near-tie", "S50", "adversarial", states=50, spread=1e-5),
    _recipe("deterministic-cycle", "S3", "small", states=3, max_draft=4),
    _recipe("deterministic-cycle", "S8", "adversarial"),
    _recipe("deterministic-cycle", "S8-L1", "adversarial", min_draft=1),
    _recipe("deterministic-cycle", "S100", "adversarial", states=100),
    _recipe("slow-mixing", "S4", "small", states=4),
    _recipe("slow-mixing", "S10", "adversarial"),
    _recipe("slow-mixing", "S10-leave1e-5", "adversarial", leave=1e-5),
    _recipe("slow-mixing", "S50", "adversarial", states=50, leave=1e-3),
)
