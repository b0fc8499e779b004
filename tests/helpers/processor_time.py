"""Processor time of tests: measured around each one, reported at the end, limited in continuous
integration.
"""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest

REPORTED_TESTS = 30
"""Number of tests that the summary lists, the most expensive first."""

MAX_SECONDS = 10.0
"""Processor seconds above which a test fails the run in continuous integration, unless it is marked
`nightly`.
"""

PROPERTY = "processor_seconds"


def processor_seconds() -> float:
    """Return the processor time of this process and of the children it has waited for, in
    seconds.
    """
    return sum(os.times()[:4])


class ProcessorTime:
    """A plugin that measures every test in the worker and reports the most expensive ones in the
    main process.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.nightly: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item
    ) -> Generator[None, bool | None, bool | None]:
        """Remember when a test began."""
        item.stash[started] = processor_seconds()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Attach the seconds to the report of the teardown, which comes last."""
        report = yield
        if report.when == "teardown":
            report.user_properties.append((PROPERTY, processor_seconds() - item.stash[started]))
            report.user_properties.append(
                ("nightly", item.get_closest_marker("nightly") is not None)
            )
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect the seconds of a test, from whichever process ran it."""
        properties = dict(report.user_properties)
        if report.when == "teardown" and PROPERTY in properties:
            self.seconds[report.nodeid] = float(str(properties[PROPERTY]))
            if properties["nightly"]:
                self.nightly.add(report.nodeid)

    def too_expensive(self) -> list[str]:
        """Return the tests above the limit that are not `nightly`; none where kernels are compiled
        with checks.
        """
        if os.environ.get("NUMBA_BOUNDSCHECK"):
            return []
        return [
            name
            for name, seconds in self.seconds.items()
            if seconds > MAX_SECONDS and name not in self.nightly
        ]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the most expensive tests, and in continuous integration those above the limit."""
        if not self.seconds or not (
            os.environ.get("CI") or os.environ.get("SPECOPT_PROCESSOR_TIME")
        ):
            return
        total = sum(self.seconds.values())
        terminalreporter.section(f"processor time: {total:.0f} s in {len(self.seconds)} tests")
        for name in sorted(self.seconds, key=self.seconds.__getitem__, reverse=True)[
            :REPORTED_TESTS
        ]:
            terminalreporter.line(f"{self.seconds[name]:8.2f} s  {name}")
        for name in self.too_expensive():
            terminalreporter.line(
                f"takes more than {MAX_SECONDS:g} s of processor time: {name}; mark it nightly",
                red=True,
            )

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail the run in continuous integration if a test is above the limit."""
        if (
            os.environ.get("CI")
            and not os.environ.get("PYTEST_XDIST_WORKER")
            and self.too_expensive()
        ):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


started = pytest.StashKey[float]()
