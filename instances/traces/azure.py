"""Azure's traces of LLM inference of 2023 and 2024 (AzurePublicDataset): one CSV table, dates as times.

Dates of 2023 have seven digits of a second and no time zone, those of 2024 six or none and +00:00.
"""

from __future__ import annotations

from specopt.instances.traces.clock import DATE
from specopt.instances.traces.table import Table

AZURE = Table(name="azure", arrival="TIMESTAMP", input="ContextTokens", output="GeneratedTokens", time_unit=DATE)
