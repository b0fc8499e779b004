"""Small instances of `draft-control` for the conformance suite."""

from __future__ import annotations

from specopt import DraftControlProblem, Problem


def _instances() -> dict[str, Problem]:
    """Small instances of `draft-control`: one and some states, periodic and transient ones, codes,
    extreme rates.
    """
    base = {
        "format": "specopt/1",
        "kind": "draft-control",
        "vocabulary_size": 50272,
        "draft_seconds_per_token": 1e-3,
        "verify_seconds": 0.1,
        "draft_lengths": [1, 32],
        "resolutions": [100],
        "states": [
            {"uplink_bits_per_second": 5e4, "acceptance_rates": [0.9]},
            {"uplink_bits_per_second": 1e7, "acceptance_rates": [0.9]},
        ],
        "transition": [[0.0, 1.0], [1.0, 0.0]],
    }
    slow = {
        "uplink_bits_per_second": 3e4,
        "downlink_bits_per_second": 1e3,
        "acceptance_rates": [0.2, 0.5],
        "distribution_bits": [20.0, 90.5],
    }
    fast = {
        "uplink_bits_per_second": 2e6,
        "downlink_bits_per_second": 5e4,
        "acceptance_rates": [0.6, 0.8],
        "distribution_bits": [15.0, 70.0],
    }
    small = base | {"draft_lengths": [0, 4], "resolutions": [200, 5], "states": [slow, fast, slow]}
    mixing = [[0.5, 0.25, 0.25], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]]
    one = base | {"states": [slow], "resolutions": [200, 5], "transition": [[1.0]]}
    sure = [{**state, "acceptance_rates": [1.0, 0.0]} for state in (slow, fast, slow)]
    cases = {
        "alternating": base,
        "no drafts allowed too": base | {"draft_lengths": [0, 32]},
        "mixing": small | {"transition": mixing},
        "support": small | {"transition": mixing, "distribution_code": "support"},
        "period 3": small | {"transition": [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]},
        "transient states": small
        | {"transition": [[0.5, 0.25, 0.25], [0.0, 1.0, 0.0], [0.0, 0.5, 0.5]]},
        "equal states": small | {"states": [fast] * 3, "transition": mixing},
        "sure and hopeless": small | {"states": sure, "transition": mixing},
        "free drafts": small | {"transition": mixing, "draft_seconds_per_token": 0.0},
        "free verification": small | {"transition": mixing, "verify_seconds": 0.0},
        "verification by length": small
        | {"transition": mixing, "verify_seconds": [0.05, 0.085, 0.099, 0.099, 0.09]},
        "one action": small | {"transition": mixing, "draft_lengths": [2, 2]},
        "one state": one,
        "one state, free downlink": one | {"states": [{**slow, "downlink_bits_per_second": 1e18}]},
        "one state, many lengths": one | {"draft_lengths": [0, 300], "states": [fast]},
        "one state, no drafts": one | {"draft_lengths": [0, 0]},
    }
    return {name: DraftControlProblem.from_dict(data) for name, data in cases.items()}


INSTANCES = _instances()
