"""Library problems of `serving-latency`."""

from __future__ import annotations

from specopt.instances.library.recipe import Recipe, recipes_of
from specopt.instances.serving_latency import FAMILIES

_recipe = recipes_of(FAMILIES)

PAIRS = ("68M-7B", "1.1B-7B", "1.1B-13B")

RECIPES: tuple[Recipe, ...] = (
    *(_recipe("paper-1", f"K7-{pair}", "small", pair=pair, tasks=7, max_output=256) for pair in PAIRS),
    _recipe("paper-1", "K20-1.1B-13B", "paper", pair="1.1B-13B", tasks=20, max_output=512),
    *(_recipe("paper-1", f"K100-{pair}", "paper", pair=pair) for pair in PAIRS),
    *(_recipe("paper-1", f"K100-{pair}-s2", "paper", 2, pair=pair) for pair in PAIRS),
    _recipe("paper-1", "K100-alpha95", "paper", alpha=0.95),
    _recipe("paper-1", "K300", "large", tasks=300),
    _recipe("paper-1", "K1000", "large", tasks=1000),
    _recipe("paper-1", "K10000", "large", tasks=10_000),
    _recipe("equal-inputs", "K6", "small", tasks=6),
    _recipe("equal-inputs", "K40", "adversarial", tasks=40),
    _recipe("equal-inputs", "K200", "adversarial", tasks=200),
    _recipe("tight-memory", "K6-fit2", "small", tasks=6, fit=2.0),
    _recipe("tight-memory", "K12-fit1", "adversarial", tasks=12, fit=1.0),
    _recipe("tight-memory", "K20-fit1", "adversarial", tasks=20, fit=1.0),
    _recipe("tight-memory", "K20-fit2", "adversarial", tasks=20, fit=2.0),
    _recipe("tight-memory", "K60-fit3", "adversarial", tasks=60),
    _recipe("tight-memory", "K100-fit4", "adversarial", tasks=100, fit=4.0),
    _recipe("stage-ratio", "K6-x20", "small", tasks=6, factor=20.0),
    *(_recipe("stage-ratio", f"K40-x{factor:g}", "adversarial", factor=factor) for factor in (0.05, 5.0, 50.0)),
    _recipe("slow-link", "K40", "adversarial"),
    _recipe("slow-link", "K100", "adversarial", tasks=100, bandwidth=2e5),
    *(_recipe("heavy-prefill", f"K{tasks}", "small", tasks=tasks) for tasks in (5, 8)),
    _recipe("heavy-prefill", "K8-s4", "adversarial", 4, tasks=8, max_output=64),
    _recipe("heavy-prefill", "K20", "adversarial", tasks=20),
    _recipe("heavy-prefill", "K60", "adversarial", tasks=60),
    *(_recipe("known-lengths", f"K{tasks}", "small", tasks=tasks) for tasks in (4, 5, 6, 7)),
    _recipe("known-lengths", "K8", "adversarial", tasks=8),
    _recipe("known-lengths", "K20", "adversarial", tasks=20),
    _recipe("known-lengths", "K100", "adversarial", tasks=100),
)
