"""Library problems of `draft-allocation`."""

from __future__ import annotations

from specopt.instances.draft_allocation import FAMILIES
from specopt.instances.library.recipe import Recipe, recipes_of

_recipe = recipes_of(FAMILIES)

RECIPES: tuple[Recipe, ...] = (
    *(
        _recipe("paper-5", f"N{clients}-C{budget}-{rates}", "paper", 0, clients=clients, budget=budget, rates=rates)
        for clients, budget in ((4, 24), (4, 28), (8, 16), (8, 20))
        for rates in ("mild", "extreme")
    ),
    _recipe("paper-5", "N8-C20-equal", "paper", 0, rates="equal"),
    _recipe("uniform", "N1", "small", clients=1, budget=6),
    _recipe("uniform", "N4", "small", clients=4, budget=10),
    _recipe("uniform", "N8-wide-weights", "paper", weight_spread=1000.0),
    _recipe("uniform", "N5-capped", "small", clients=5, budget=9, cap=3),
    _recipe("uniform", "N100", "paper", clients=100, budget=400),
    _recipe("uniform", "N100-no-budget", "small", clients=100, budget=0),
    _recipe("uniform", "N10000", "large", clients=10_000, budget=200_000),
    _recipe("uniform", "N10000-capped", "large", clients=10_000, budget=30_000, cap=8),
    _recipe("uniform", "N100000", "large", clients=100_000, budget=400_000),
    _recipe("ties", "N4", "small", clients=4, budget=7),
    _recipe("ties", "N8", "adversarial"),
    _recipe("ties", "N8-groups4", "adversarial", groups=4),
    _recipe("ties", "N1000-groups10", "adversarial", clients=1000, budget=3333, groups=10),
    _recipe("ties", "N1000-quarter", "adversarial", clients=1000, budget=1500, acceptance=0.25, groups=5),
    _recipe("one-dominates", "N4", "small", clients=4, budget=12),
    _recipe("one-dominates", "N8", "adversarial"),
    _recipe("one-dominates", "N8-1e-6", "adversarial", distance=1e-6, budget=100_000),
    _recipe("one-dominates", "N1000", "adversarial", clients=1000, budget=5000),
    _recipe("capped", "N5", "small", clients=5, most=3),
    _recipe("capped", "N20", "adversarial"),
    _recipe("capped", "N20-ample", "adversarial", share=1.5),
    _recipe("capped", "N1000", "adversarial", clients=1000, share=0.5),
)
