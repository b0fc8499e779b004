"""Conversion of a user's deployment into a `fair-goodput` problem.

The clients are identical. Each client drafts on a separate device, and all clients share the user's
verifier.
"""

from __future__ import annotations

import numpy as np

from specopt.instances.deployment.deployment import Deployment
from specopt.instances.deployment.proposal import Given, Proposal
from specopt.instances.fair_goodput import FAMILIES
from specopt.instances.family import labelled
from specopt.models.fair_goodput.problem import FairGoodputProblem

MEASURE = {
    "acceptance_rates": (
        "--acceptance FILE for one rate, or --set acceptance_rates=[...] for one rate per client"
    ),
    "network_seconds": "--link MBITS,RTT_MS, as ping between client and verifier measures it",
    "budget_tokens": "--set budget_tokens=N, the number of draft tokens per round of the verifier",
}


def fair_goodput(known: Deployment, seed: int) -> Proposal:
    """Return a `fair-goodput` problem in which the clients' goodput is measured per second.

    The verification time is a linear function of the number of draft tokens. The function
    interpolates between two measured passes.
    """
    (family,) = labelled(FAMILIES, "per-second")
    base: FairGoodputProblem = family.generate(seed=seed)
    clients = len(base.acceptance_rates)
    path = known.passes.path
    draft = known.passes.times["draft"]
    verify = known.passes.times["verify"]
    drafts = max(1, base.budget_tokens)
    new = np.array([1.0, 1.0 + drafts / clients])
    where = np.full(1, float(clients)), new, np.array([known.context(verify)])
    first, last = np.broadcast_to(verify.seconds(*where), new.shape).tolist()
    beyond = "" if np.all(verify.covers(*where)) else ", beyond the measured range"
    source = f"{path}: batches of {clients}{beyond}"
    given: Given = {
        "draft_seconds_per_token": (
            [known.seconds_per_token(draft)] * clients,
            f"{path}: a draft pass of one token",
        ),
        "verify_overhead_seconds": (first, source),
        "verify_seconds_per_token": ((last - first) / drafts, source),
    }
    if known.link is not None and known.link.round_trip_seconds is not None:
        given["network_seconds"] = ([known.link.round_trip_seconds] * clients, "--link")
    if known.acceptance is not None:
        given["acceptance_rates"] = (
            [known.rate] * clients,
            "--acceptance, as one rate for all clients",
        )
    unused = [] if known.memory_bytes is None else ["--memory: the model has no memory"]
    if known.trace is not None:
        unused.append(
            "requests of the trace, except their mean context, because clients never pause"
        )
    return Proposal.of(base, family, given, MEASURE, unused)
