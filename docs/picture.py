"""Draw the picture of the README again: ``python -P docs/picture.py``."""

from __future__ import annotations

from pathlib import Path

import specopt
from specopt.views.serving_latency import pipeline_figure

problem = specopt.generate("serving-latency/paper-1", tasks=60, seed=1)
pipeline_figure(problem, specopt.solve(problem).plan).save(Path(__file__).parent / "pipeline.png")
