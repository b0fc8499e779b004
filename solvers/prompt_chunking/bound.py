"""Lower bounds on the time to first token: what every plan must do, whatever its chunks.

Each term is the length of a path through the event model that every plan contains, with all that depends on the plan
replaced by the least that any plan can have. g never falls, so one token (or one grid cell) is the cheapest chunk.
"""

from __future__ import annotations

from specopt.models.prompt_chunking import PromptChunkingProblem


def path_bound(problem: PromptChunkingProblem) -> float:
    """Return the larger of the two paths that need no search; seconds.

    Upload path: the device computes the first token, every byte goes up in at least one message, then at least one
    token waits, passes the P stages and comes back. Download path (if all deep states come back): at least one
    token goes up and through the cloud before any byte can come down, then all of them do.
    """
    A, N = problem.bytes_per_token, problem.prompt_tokens
    g, mu = problem.cloud_delay, problem.background_tokens
    wait = 0.0 if problem.wait == "none" else g.at(mu) / problem.pipeline_length
    first = problem.local_overhead_seconds + problem.local_seconds_per_token + problem.message_overhead_seconds
    through = 2 * problem.link_latency_seconds + wait + g.at(mu + 1)
    one_up, one_down = A / problem.uplink_bytes_per_second, A / problem.downlink_bytes_per_second
    bound = first + N * one_up + through + one_down
    if problem.download == "all":
        bound = max(bound, first + one_up + through + N * one_down)
    return bound + problem.head_seconds
