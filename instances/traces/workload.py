"""Long runs that look like a trace: what the simulators of verification and of prompts draw their requests from.

Both draw their own arrivals: the first from devices that think, the second from a Poisson process. A replay of the
very arrivals takes copies of the arrays of the trace (its own are read-only).
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from specopt.instances.prompt_chunking.workload import paper_4_workload
from specopt.instances.traces.trace import Trace
from specopt.instances.verification_batch.workload import mixed_classes
from specopt.models.fields import Ints
from specopt.models.prompt_workload import PromptWorkload
from specopt.models.verification_workload import VerificationWorkload


def verification_workload(trace: Trace, **parameters: Any) -> VerificationWorkload:
    """Return devices whose prompts and responses are as long as those of a trace: lognormal, fitted.

    Medians are those of the trace, sigmas the standard deviations of its logarithms, and no length is above its
    longest.

    Parameters
    ----------
    trace
        The requests.
    parameters
        Of `mixed_classes`.

    Raises
    ------
    InvalidInput
        If a parameter is outside its domain.
    """
    prompt, prompt_sigma = _lognormal(trace.input_tokens)
    response, response_sigma = _lognormal(trace.output_tokens)
    return dataclasses.replace(
        mixed_classes(**parameters),
        prompt_median_tokens=prompt,
        prompt_sigma=prompt_sigma,
        response_median_tokens=response,
        response_sigma=response_sigma,
        most_prompt_tokens=int(trace.input_tokens.max()),
        most_response_tokens=int(trace.output_tokens.max()),
    )


def prompt_workload(
    trace: Trace, dataset: str = "specbench", *, requests_per_second: float | None = None, **parameters: Any
) -> PromptWorkload:
    """Return requests that arrive as often as those of a trace, with prompts drawn from its own.

    Every response has the mean length of the trace's, rounded.

    Parameters
    ----------
    trace
        The requests.
    dataset
        "specbench" or "cnn-dm": models and links of paper 4.
    requests_per_second
        Rate; None: the mean rate of the trace.
    parameters
        Of `paper_4_workload`.

    Raises
    ------
    InvalidInput
        If a parameter is outside its domain, or no rate is given and all requests arrive at once.
    """
    rate = trace.requests_per_second if requests_per_second is None else requests_per_second
    prompts = trace.input_tokens
    return dataclasses.replace(
        paper_4_workload(dataset, requests_per_second=rate, **parameters),
        prompt_tokens=prompts,
        prompt_mean_tokens=float(prompts.mean()),
        prompt_std_tokens=float(prompts.std()),
        most_prompt_tokens=int(prompts.max()),
        output_tokens=max(1, round(float(trace.output_tokens.mean()))),
    )


def _lognormal(tokens: Ints) -> tuple[float, float]:
    return float(np.median(tokens)), float(np.log(tokens).std())
