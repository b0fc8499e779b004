"""Models for the duration of a forward pass, used by engines, problems, fits and simulators.

==================  =====================  =======================================================
form                module                 duration of a pass
==================  =====================  =======================================================
linear, pieces      `lines`                c1 F b + c2 for F operations per sequence and b sequences
linear, pieces      `form`                 the same, or with a slope per token
estimator           `additive`             c + sum of w_i, with a weight w_i per request (paper 2)
knots               `knots`                piecewise linear in the tokens of a batch (paper 4)
fitted              `fitted`               a fitted form with limits, misfit and measured ranges
table               `measured`             interpolation of measured passes
captured batches    `staircase`            another form, with batches padded to a captured size
==================  =====================  =======================================================

A *piece* is a linear function. A form with several pieces is the maximum of the pieces. A *knot* is
a point at which the slope of a piecewise-linear function changes. The *limits* of a pass time are
lower and upper estimates of the duration, and the *misfit* is the relative error of a fitted form.

The function `pass_time` reads all forms except knots from JSON-like data, and
`specopt.instances.runtimes` reads files of tables and fits. `weight_reads` computes how many bytes
of weights a pass reads.
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
