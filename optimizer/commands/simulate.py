"""The command `specopt simulate`, which simulates a plan or a policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specopt.commands.shared import (
    AsJson,
    Seed,
    argument,
    console,
    flag,
    hand_over,
    option,
    print_json,
    read_problem,
    read_result,
)
from specopt.models.errors import InvalidInput, SpecoptError

if TYPE_CHECKING:
    from specopt.instances.family import Family
    from specopt.kinds.kind import Simulator

POLICIES = (
    "draft-control: adaptive-heuristic, llm-alone; fair-goodput: robust, gradient, fixed, random;"
    " verification-batch: fcfs, edf, algorithm-1, algorithm-1-drop, per-epoch, slack;"
    " prompt-chunking: u-shape, u-medusa, u-sarathi, hat, planned; on a continuous-serving FILE:"
    " online, continuous, autoregressive, algorithm-1."
)
WORKLOADS = (
    "draft-control: its families of problems; fair-goodput: fixed, random, drifting, switching;"
    " verification-batch: mixed-classes, one-class, predicted-rejections; prompt-chunking:"
    " specbench, cnn-dm, equal-prompts."
)


@dataclass(frozen=True, kw_only=True)
class Simulate:
    """Values of the arguments and options of `specopt simulate`."""

    source: str = argument("FILE|KIND", "A problem file (JSON), or a kind with --policy.")
    result: Path | None = argument(
        "[RESULT]", "A result file (JSON) of the problem in FILE.", default=None
    )
    policy: str | None = option(
        "P[,P...]",
        f"Policy to simulate, for KIND or on FILE; several are compared. {POLICIES}",
    )
    workload: str | None = option("FAMILY", f"Workload of the policy. {WORKLOADS}")
    param: list[str] | None = option(
        "NAME=VALUE", "A parameter of the workload family, or an option of the simulator."
    )
    replications: int | None = option(
        "R",
        "Number of replications; default: 1000 for plans (200 for continuous-serving), 100 for"
        " rounds, 5 for long runs.",
    )
    drop_finished: bool = flag("Serving latency: finished tasks leave at once.")
    iterations: int | None = option(
        "I", "Draft control: iterations per replication; default: 1000."
    )
    response_tokens: int | None = option(
        "N", "Draft control: also simulate responses of N tokens (Eq. 12)."
    )
    seed: Seed = 0
    as_json: AsJson = False


def simulate(given: Simulate) -> None:
    """Simulate a plan with random acceptances, or a policy on a workload.

    With FILE RESULT, report the actual latency of a serving-latency or continuous-serving plan, or
    the tokens per second of a draft-control plan, next to the value that the model predicts. With
    KIND --policy P --workload FAMILY, report the long-run performance of a policy. With FILE
    --policy P, report the performance of a policy on the tasks of a problem.
    """
    from specopt import simulate as play
    from specopt.api.simulate import compare_policies, simulator_of
    from specopt.models.files import load
    from specopt.models.judge import verify
    from specopt.models.result import Result

    policy, workload, result, param = given.policy, given.workload, given.result, given.param or ()
    options: dict[str, Any] = {"drop_finished": True} if given.drop_finished else {}
    for name in ("iterations", "response_tokens", "replications"):
        if (value := getattr(given, name)) is not None:
            options[name] = value
    title = f"policy {policy} on {workload or given.source}"
    world: Any = None
    played: Any = policy
    if policy is None and workload is None:
        if result is None:
            raise InvalidInput(
                "RESULT: missing; required with FILE; otherwise, give KIND with --policy and"
                " --workload"
            )
        world, played = read_problem(Path(given.source)), read_result(result)
        title = f"plan by {played.by}"
        try:
            verify(world, played)
        except SpecoptError as error:
            raise InvalidInput(f"{result}: {error}") from None
    elif result is not None:
        raise InvalidInput(f"RESULT: omit {result} when --policy or --workload is given")
    elif workload is None and Path(given.source).exists():
        world = load(Path(given.source))
        if isinstance(world, Result):
            raise InvalidInput(
                f"{given.source}: expected a problem or a workload, got a result for a"
                f" {world.kind} problem"
            )
    name = getattr(world, "name", None) or ""
    if world is not None:
        options |= _parameters(simulator_of(world)[1], None, param)[1]
    else:
        world, played, more = _policy_on_workload(given.source, policy, workload, param, given.seed)
        options |= more
    several = played.split(",") if isinstance(played, str) else []
    if len(several) > 1:
        compared = compare_policies(
            several, {workload or given.source: world}, seed=given.seed, **options
        )
        print_json(compared.rows) if given.as_json else hand_over(str(compared))
        return
    found = play(world, played, seed=given.seed, verbose=True, **options)
    if given.as_json:
        print_json(found.to_dict())
        return
    from specopt.views.simulation import print_simulation

    print_simulation(found, console(), title, name)


def _policy_on_workload(
    kind: str, policy: str | None, workload: str | None, param: Sequence[str], seed: int
) -> tuple[Any, str, dict[str, Any]]:
    """Return a tuple (workload, policy, options), which contains the arguments of `simulate`."""
    from specopt.api.plugins import POLICIES, plugged
    from specopt.api.simulate import SIMULATORS
    from specopt.models.arguments import one_of

    simulator = SIMULATORS[
        one_of("KIND", kind, [one for one, simulator in SIMULATORS.items() if simulator.policies])
    ]
    for name in (policy or "").split(","):
        if plugged(POLICIES, f"{kind}.{name}") is None:
            one_of("--policy", name or None, simulator.policies)
    families = {family.label: family for family in simulator.workloads}
    short = workload if workload is None else workload.removeprefix(f"{kind}/")
    family = families[one_of("--workload", short, families)]
    given, options = _parameters(simulator, family, param)
    if "seed" in family.defaults:
        given["seed"] = seed
    return family.build(**given), str(policy), options


def _parameters(
    simulator: Simulator, family: Family | None, param: Sequence[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Separate parameters of the workload family from options of the simulator.

    Return a pair of dictionaries in this order.
    """
    from specopt.api.arguments import pairs_of, typed

    own = {} if family is None else family.plain
    given: dict[str, Any] = {}
    options: dict[str, Any] = {}
    for name, text in pairs_of(param, "--param").items():
        if name not in own and name not in simulator.settings:
            known = ", ".join([*own, *simulator.settings])
            raise InvalidInput(
                f"--param {name}: expected one of {known}, got {name!r}; the seed is --seed"
            )
        if name in own:
            given[name] = typed(f"--param {name}", own[name], text)
        else:
            options[name] = typed(f"--param {name}", simulator.settings[name], text)
    return given, options
