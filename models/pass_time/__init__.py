"""Time of a forward pass: one family of named forms for engines, kinds of problems, fits and
simulators.

==================  =====================  =======================================================
form                module                 seconds of a pass
==================  =====================  =======================================================
linear, pieces      `lines`                c1 F b + c2 for F operations per sequence
linear, pieces      `form`                 the same per token; read from files by `read_lines`
estimator           `additive`             c + sum of w_i, additive weights of requests (paper 2)
knots               `knots`                piecewise linear in the tokens of a batch (paper 4)
fitted              `fitted`               any of these with limits, misfit and measured ranges
table               `measured`             measured passes, interpolated
captured batches    `staircase`            any of these for the next captured batch size
==================  =====================  =======================================================

`pass_time` reads all forms; `specopt.instances.runtimes` reads tables and fits. `weight_reads`
computes the bytes of weights that a pass reads.
"""

from __future__ import annotations

from specopt.models.pass_time.additive import COEFFICIENTS, VerificationTime, features
from specopt.models.pass_time.knots import CloudDelay
from specopt.models.pass_time.lines import (
    LinearRuntime,
    PiecewiseRuntime,
    Runtime,
    TabledRuntime,
    pass_seconds,
)
from specopt.models.pass_time.measured import PassTable
from specopt.models.pass_time.pass_time import PassTime, Which
from specopt.models.pass_time.read import pass_time

__all__ = [
    "COEFFICIENTS",
    "CloudDelay",
    "LinearRuntime",
    "PassTable",
    "PassTime",
    "PiecewiseRuntime",
    "Runtime",
    "TabledRuntime",
    "VerificationTime",
    "Which",
    "features",
    "pass_seconds",
    "pass_time",
]
