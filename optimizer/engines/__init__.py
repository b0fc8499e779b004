"""Conversion of speculation schedules to configurations for serving engines.

Each engine has a module that contains its configuration keys and rules.
"""

from __future__ import annotations

from specopt.engines.engine import Engine as Engine
from specopt.engines.llama_cpp import LLAMA_CPP
from specopt.engines.sglang import SGLANG
from specopt.engines.tensorrt_llm import TENSORRT_LLM
from specopt.engines.vllm import VLLM

ENGINES = {engine.name: engine for engine in (VLLM, SGLANG, TENSORRT_LLM, LLAMA_CPP)}
