"""Shared fixtures, and how hypothesis runs here."""

from __future__ import annotations

import os
import time
from pathlib import Path

import helpers.vectors  # noqa: F401, before numpy
import pytest
from helpers.processor_time import ProcessorTime
from hypothesis import HealthCheck, is_hypothesis_test, settings

from specopt import ServingLatencyProblem, generate

# too_slow: the first example of a run may compile the kernels, which takes seconds on a fresh cache
settings.register_profile(
    "default", deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")
EXAMPLES = int(os.environ.get("SPECOPT_EXAMPLES", "1"))
"""Factor on the examples of every hypothesis test."""


def pytest_configure(config: pytest.Config) -> None:
    """Measure the processor time of every test."""
    config.pluginmanager.register(ProcessorTime())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the slow tests: where one of them came last, the other processes would wait for
    it.
    """
    tests = {item.function for item in items if isinstance(item, pytest.Function)}
    for test in tests if EXAMPLES > 1 else ():
        if is_hypothesis_test(test):
            used = test._hypothesis_internal_use_settings
            more = settings(used, max_examples=EXAMPLES * used.max_examples)
            test._hypothesis_internal_use_settings = more
    items.sort(key=lambda one: one.get_closest_marker("slow") is None)


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of the published examples."""
    return Path(__file__).parent / "data"


@pytest.fixture
def own_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let limits count what this process uses of the processor: what else the machine does is no
    matter.
    """
    monkeypatch.setattr(time, "perf_counter", time.process_time)


@pytest.fixture
def small() -> ServingLatencyProblem:
    """Five tasks of the paper's setting."""
    problem = generate("serving-latency/paper-1", tasks=5, max_output=64, seed=1)
    assert isinstance(problem, ServingLatencyProblem)
    return problem
