"""What runs beside a server: objects that are called step by step and learn from what is reported
to them.

Any thread may call them. A call takes effect as a whole or, with an exception, not at all.
`state()` returns data for strict JSON and `from_state` restores the object; keys name requests,
clients, tasks and devices.
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
