"""Pass times that form a staircase."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from specopt.models.pass_time.staircase import Staircase


@pytest.mark.parametrize("within", [True, False])
@pytest.mark.parametrize("outside", [True, False])
def test_one_part_with_limits_is_enough(within: bool, outside: bool) -> None:
    """Tests that a staircase has limits if the times of small or of large batches have limits."""
    parts: list[Any] = [Mock(has_limits=limited) for limited in (within, outside)]
    assert Staircase(np.array([1.0, 4.0]), *parts).has_limits == (within or outside)
