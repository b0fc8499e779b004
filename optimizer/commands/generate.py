"""The command `specopt generate`, which creates a problem from a named family."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

from specopt.commands.shared import (
    Output,
    Parameters,
    Replacements,
    RuntimesFile,
    Seed,
    argument,
    check_target,
    hand_over,
    measured,
)


class WithFamilies(TyperCommand):
    """A command whose help text ends with a list of the built-in problem families.

    The families are loaded only if the help text is shown.
    """

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the names and descriptions of the built-in families at the end of the help text."""
        from specopt.api.generate import FAMILIES

        with formatter.section("Families"):
            formatter.write_dl([(family.name, family.summary) for family in FAMILIES.values()])


def generate(
    family: str = argument("KIND/FAMILY", "A named family of problems."),
    param: Parameters = None,
    runtimes: RuntimesFile = None,
    set_: Replacements = None,
    seed: Seed = 0,
    output: Output = None,
) -> None:
    """Create a problem from a named family."""
    from specopt.api.arguments import parameters_of, with_fields
    from specopt.api.generate import generate as generate_problem
    from specopt.models.files import to_json

    check_target(output, runtimes)
    parameters = parameters_of(family, param or ())
    problem = with_fields(
        measured(generate_problem(family, seed=seed, **parameters), runtimes), set_ or ()
    )
    hand_over(to_json(problem.to_dict()), output)
