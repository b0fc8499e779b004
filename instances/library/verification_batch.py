"""Library problems of `verification-batch`."""

from __future__ import annotations

from specopt.instances.library.recipe import Recipe, recipes_of
from specopt.instances.verification_batch import FAMILIES

_recipe = recipes_of(FAMILIES)

RECIPES: tuple[Recipe, ...] = (
    *(
        _recipe(family, f"n{requests}", size, requests=requests)
        for family in ("warm", "mixed", "tight", "memory-bound")
        for requests, size in ((14, "small"), (100, "paper"), (2000, "large"))
    ),
    _recipe("mixed", "n100-section-4.4", "paper", coefficients="section-4.4"),
    _recipe("memory-bound", "n5000-short", "large", requests=5000, memory_share=0.002),
    _recipe("memory-bound", "n20000", "large", requests=20_000),
    _recipe("bursty", "n14", "small", requests=14, bursts=3),
    _recipe("bursty", "n100", "adversarial"),
    _recipe("bursty", "n100-one", "adversarial", bursts=1),
    _recipe("bursty", "n2000", "adversarial", requests=2000, bursts=40, spacing_seconds=0.02),
    _recipe("hopeless-urgent", "n14", "small", requests=14),
    _recipe("hopeless-urgent", "n100", "adversarial"),
    _recipe("hopeless-urgent", "n100-ten", "adversarial", hopeless=10),
    _recipe("density-trap", "n14", "small", requests=14),
    _recipe("density-trap", "n100", "adversarial", requests=100),
    _recipe("density-trap", "n100-ratio2", "adversarial", requests=100, ratio=2.0),
    _recipe("correlated", "n14", "small", requests=14),
    _recipe("correlated", "n14-subset-sum", "small", requests=14, offset=0.0),
    _recipe("correlated", "n60", "adversarial", requests=60),
    _recipe("correlated", "n60-subset-sum", "adversarial", requests=60, offset=0.0),
    *(_recipe("correlated", f"n300-s{seed}", "adversarial", seed, requests=300) for seed in (0, 2)),
    _recipe("correlated", "n100-short-memory", "adversarial", requests=100, memory_share=0.1),
)
