"""Conversion of plans to CSV tables and YAML."""

from __future__ import annotations

from specopt.kinds import kind_of
from specopt.models.errors import InvalidInput
from specopt.models.files import csv_text
from specopt.models.problem import Plan
from specopt.models.result import Result


def to_csv(result: Result) -> str:
    """Return the plan of a result as CSV with a header.

    Raises
    ------
    InvalidInput
        If the result has no plan.
    """
    rows = list(kind_of(result.kind).rows(_plan(result)))
    return csv_text([list(rows[0]) if rows else ["empty"], *(row.values() for row in rows)])


def to_yaml(result: Result) -> str:
    """Return the plan of a result as YAML, with method, objective and bound.

    Raises
    ------
    InvalidInput
        If the result has no plan.
    """
    import yaml

    plan = _plan(result).to_dict()
    head = {
        name: value
        for name, value in result.to_dict().items()
        if name in ("kind", "problem_sha256", "method", "status", "objective", "bound", "gap")
    }
    return str(
        yaml.safe_dump({**head, "plan": plan}, sort_keys=False, default_flow_style=None, width=100)
    )


def _plan(result: Result) -> Plan:
    if result.plan is None:
        raise InvalidInput(f"plan: the result has no plan (it is {result.status})")
    return result.plan
