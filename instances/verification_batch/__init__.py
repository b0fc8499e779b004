"""Families of `verification-batch` problems, and of workloads for its policies."""

from __future__ import annotations

from specopt.instances.family import Family
from specopt.instances.verification_batch import workload
from specopt.instances.verification_batch.bursty import bursty
from specopt.instances.verification_batch.correlated import correlated
from specopt.instances.verification_batch.density_trap import density_trap
from specopt.instances.verification_batch.hopeless_urgent import hopeless_urgent
from specopt.instances.verification_batch.pending import memory_bound, mixed, tight, warm

FAMILIES: tuple[Family, ...] = (
    Family("verification-batch/warm", warm),
    Family("verification-batch/mixed", mixed),
    Family("verification-batch/tight", tight),
    Family("verification-batch/memory-bound", memory_bound),
    Family("verification-batch/bursty", bursty),
    Family("verification-batch/hopeless-urgent", hopeless_urgent),
    Family("verification-batch/density-trap", density_trap),
    Family("verification-batch/correlated", correlated),
)

WORKLOADS: tuple[Family, ...] = (
    Family("verification-batch/mixed-classes", workload.mixed_classes),
    Family("verification-batch/one-class", workload.one_class),
    Family("verification-batch/predicted-rejections", workload.predicted_rejections),
)
