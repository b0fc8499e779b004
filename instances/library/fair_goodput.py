"""Library problems of `fair-goodput`."""

from __future__ import annotations

from specopt.instances.fair_goodput import FAMILIES
from specopt.instances.library.recipe import Recipe, recipes_of

_recipe = recipes_of(FAMILIES)

RECIPES: tuple[Recipe, ...] = (
    *(
        _recipe("paper-5", f"N{clients}-C{budget}-{rates}", "paper", 0, clients=clients, budget=budget, rates=rates)
        for clients, budget in ((4, 24), (4, 28), (8, 16), (8, 20))
        for rates in ("mild", "extreme")
    ),
    _recipe("paper-5", "N3-C5", "small", 0, clients=3, budget=5),
    _recipe("paper-5", "N4-C6-sum", "small", 0, clients=4, budget=6, fairness=0.0),
    _recipe("paper-5", "N8-C20-g2", "paper", 0, fairness=2.0),
    _recipe("paper-5", "N8-C20-equal", "adversarial", 0, rates="equal"),
    _recipe("paper-5", "N1000", "large", 0, clients=1000, budget=4000),
    _recipe("paper-5", "N20000", "large", 0, clients=20_000, budget=100_000, rates="wide"),
    _recipe("per-second", "N3-C5", "small", clients=3, budget=5),
    _recipe("per-second", "N4-C6-sum", "small", clients=4, budget=6, fairness=0.0),
    _recipe("per-second", "N8-C20", "paper"),
    _recipe("per-second", "N8-C20-extreme", "paper", rates="extreme"),
    _recipe("per-second", "N8-C20-g5", "adversarial", fairness=5.0),
    _recipe("per-second", "N30-C100", "large", clients=30, budget=100),
    _recipe("per-second", "N200-C600", "large", clients=200, budget=600),
    _recipe("minimum-rates", "N3-C5", "small", clients=3, budget=5, tightness=0.5),
    _recipe("minimum-rates", "N8-C20", "adversarial"),
    _recipe("minimum-rates", "N8-C20-log", "adversarial", fairness=1.0),
    _recipe("minimum-rates", "N100", "adversarial", clients=100, budget=300, tightness=0.99),
    _recipe("extreme-fairness", "N3-C5", "small", clients=3, budget=5, fairness=5.0),
    _recipe("extreme-fairness", "N8-C20-g0.5", "adversarial", fairness=0.5),
    _recipe("extreme-fairness", "N8-C20-g20", "adversarial"),
    _recipe("extreme-fairness", "N8-C20-g0-capped", "adversarial", fairness=0.0, cap=5),
    _recipe("extreme-fairness", "N100-g10", "adversarial", clients=100, budget=400, fairness=10.0),
)
