"""Library problems of `draft-stopping`."""

from __future__ import annotations

from specopt.instances.draft_stopping import FAMILIES
from specopt.instances.library.recipe import Recipe, recipes_of

_recipe = recipes_of(FAMILIES)

RECIPES: tuple[Recipe, ...] = (
    _recipe("paper-2", "table-10", "paper", 0),
    _recipe("paper-2", "table-10-slow-drafts", "paper", 0, draft_seconds_per_token=0.06),
    _recipe("paper-2", "table-10-L16", "paper", 0, max_draft=16),
    _recipe("paper-2", "perfect", "adversarial", 0, false_accept=0.0, false_reject=0.0),
    _recipe("paper-2", "blind", "adversarial", 0, false_accept=0.5, false_reject=0.5),
    _recipe("paper-2", "free-drafts", "adversarial", 0, draft_seconds_per_token=0.0),
    _recipe("paper-2", "after-as-accepted", "paper", 0, goes_on_after=0.8),
    _recipe("mixed", "L10", "paper", 0),
    _recipe("mixed", "L10-few-easy", "paper", 0, easy_share=0.1),
    _recipe("mixed", "L10-few-hard", "paper", 0, easy_share=0.9),
    _recipe("mixed", "L10-strong", "paper", 0, signal=3.0),
    _recipe("mixed", "L10-slow-drafts", "paper", 0, draft_seconds_per_token=0.06),
    _recipe("mixed", "L10-after-as-rejected", "paper", 0, after=1.0),
    _recipe("mixed", "L32-B2", "large", 0, bins=2, max_draft=32),
    _recipe("mixed", "L10-no-signal", "adversarial", 0, signal=0.0),
    _recipe("mixed", "L8-alike", "small", 0, easy=0.8, hard=0.8, max_draft=8),
    _recipe("mixed", "L12-B8", "large", 0, bins=8, max_draft=12),
    _recipe("random", "L4", "small", max_draft=4),
    _recipe("random", "L8", "small"),
    *(_recipe("random", f"L6-{seed}", "small", seed, max_draft=6) for seed in range(2, 8)),
    _recipe("random", "L8-drift", "adversarial", drift=1.0),
    _recipe("random", "L10-dear", "adversarial", most_cost=3.0, max_draft=10),
    _recipe("random", "L16-B2", "small", bins=2, max_draft=16),
    _recipe("random", "L12-B6", "large", bins=6, max_draft=12),
    _recipe("random", "L8-C10", "adversarial", classes=10),
)
