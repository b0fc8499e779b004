"""Online schedulers and monitors for servers.

The caller drives each object step by step and reports observations, from which the object learns.
Calls are thread-safe. A call either takes effect completely or, if it raises an exception, has no
effect. `state()` returns data that can be stored as strict JSON, and `from_state` restores the
object. Requests, clients, tasks and devices are identified by keys.
"""

from specopt.models.arguments import Key
from specopt.online.asynchronous import AsyncScheduler, NotVerified
from specopt.online.base import Refused
from specopt.online.goodput import GoodputScheduler
from specopt.online.prompts import PromptMonitor
from specopt.online.serving import ServingScheduler
from specopt.online.verification import VerificationScheduler

__all__ = [
    "AsyncScheduler",
    "GoodputScheduler",
    "Key",
    "NotVerified",
    "PromptMonitor",
    "Refused",
    "ServingScheduler",
    "VerificationScheduler",
]
