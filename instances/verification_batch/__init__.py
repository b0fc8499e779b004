"""Families that generate `verification-batch` problems, or workloads for their policies."""

from __future__ import annotations

from specopt.instances.family import families
from specopt.instances.verification_batch import workload
from specopt.instances.verification_batch.hard import (
    bursty,
    correlated,
    density_trap,
    hopeless_urgent,
)
from specopt.instances.verification_batch.pending import memory_bound, mixed, tight, warm
from specopt.models.verification_batch.problem import VerificationBatchProblem

FAMILIES = families(
    VerificationBatchProblem,
    warm,
    mixed,
    tight,
    memory_bound,
    bursty,
    hopeless_urgent,
    density_trap,
    correlated,
)

WORKLOADS = families(
    VerificationBatchProblem,
    workload.mixed_classes,
    workload.one_class,
    workload.predicted_rejections,
)
