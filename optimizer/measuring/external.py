"""Load generation with an external program, which is GuideLLM 0.8 or `vllm bench serve`."""

from __future__ import annotations

import json
import math
import shlex
import shutil
import subprocess
import tempfile
from itertools import cycle, islice
from pathlib import Path

from specopt.instances.sweeps import read_sweeps
from specopt.measuring.client import Client
from specopt.models.errors import InvalidInput, ServerFailed
from specopt.models.load import Load, name_of

PROGRAMS = "guidellm", "vllm"

FEWEST = 4
"""Minimum ratio of the number of requests in a load to the number of concurrent requests."""


class External:
    """An external program that generates load on a server.

    Parameters
    ----------
    command
        Name of the program, guidellm or vllm, followed by additional options for the program.
    client
        Client that specifies the server, the prompts, the response lengths and the limits.
    model
        Name of the model on the server.

    Raises
    ------
    InvalidInput
        If the program is unknown or not installed.
    """

    def __init__(self, command: str, client: Client, model: str) -> None:
        self.program, *self.more = shlex.split(command) or [""]
        if self.program not in PROGRAMS:
            raise InvalidInput(
                f"--load-generator: expected own, {' or '.join(PROGRAMS)}, got {self.program!r}"
            )
        if shutil.which(self.program) is None:
            raise InvalidInput(
                f"--load-generator: {self.program} is not on PATH; run `pip install {self.program}`"
            )
        self.client, self.model = client, model

    def run(self, concurrency: int, length: int | None, speed: float) -> Load:
        """Run a load on the server and return its measurements.

        The expected throughput `speed` determines the number of requests.

        Raises
        ------
        ServerFailed
            If the program fails.
        """
        client, base = self.client, self.client.endpoint.rstrip("/").removesuffix("/v1")
        tokens = round(sum(client.max_tokens) / len(client.max_tokens))
        most = max(FEWEST * concurrency, math.ceil(speed * client.seconds / tokens))
        count = max(concurrency, min(client.requests, most))
        with tempfile.TemporaryDirectory() as folder:
            asked, result = Path(folder) / "prompts.jsonl", Path(folder) / "result.json"
            lines = ""
            pairs = islice(
                zip(cycle(client.prompts), cycle(client.max_tokens), strict=False), count
            )
            for text, most in pairs:
                lines += json.dumps({"prompt": text, "output_tokens_count": most}) + "\n"
            asked.write_text(lines)
            words = self._words(base, concurrency, tokens, count, asked, result)
            command = [self.program, *words, *self.more]
            before = client.counted()
            limit = client.seconds + math.ceil(count / concurrency) * client.patience
            try:
                done = subprocess.run(
                    command,
                    capture_output=True,
                    text=True,
                    errors="replace",
                    check=False,
                    timeout=limit,
                )
            except subprocess.TimeoutExpired:
                raise ServerFailed(
                    f"at concurrency {concurrency}: {self.program} did not finish within"
                    f" {limit:g} s"
                ) from None
            if done.returncode or not result.exists():
                last = (done.stderr or done.stdout).strip().rpartition("\n")[2][:300]
                raise ServerFailed(
                    f"at concurrency {concurrency}: {self.program} ended with status"
                    f" {done.returncode}; it last printed: {last or 'nothing'}"
                )
            measured = read_sweeps([f"{result}@{name_of(length)}"]).measurements
            if not measured:
                raise ServerFailed(
                    f"at concurrency {concurrency}: {self.program} reported no throughput"
                )
            found = measured[0]
        return Load(
            found.tokens_per_second or 0.0,
            0.0,
            found.acceptance_length,
            0.0,
            client.counted(before),
        )

    def _words(
        self, base: str, concurrency: int, tokens: int, count: int, asked: Path, result: Path
    ) -> list[str]:
        """Return the command-line arguments for the program.

        GuideLLM stops after the last prompt, or when its time limit expires.
        """
        if self.program == "vllm":
            return shlex.split(
                f"bench serve --backend openai --base-url {base} --endpoint /v1/completions --model"
                f" {shlex.quote(self.model)} --dataset-name custom --dataset-path {asked}"
                f" --custom-output-len {tokens} --skip-chat-template --disable-shuffle --ignore-eos"
                f" --temperature 0 --num-prompts {count} --max-concurrency {concurrency}"
                f" --save-result --result-dir {result.parent} --result-filename {result.name}"
            )
        options = {
            "backend": {
                "kind": "openai_http",
                "target": base,
                "model": self.model,
                "validate_backend": False,
                "request_format": "/v1/completions",
                "extras": {"body": {"temperature": 0.0}},
            },
            "profile": {"kind": "concurrent", "streams": concurrency},
            "constraint": {"kind": "max_duration", "seconds": self.client.seconds},
            "data": {"kind": "json_file", "path": str(asked)},
            "output": {"kind": "json", "path": str(result)},
        }
        given = [
            word for name, value in options.items() for word in (f"--{name}", json.dumps(value))
        ]
        return ["run", *given, "--disable-console"]
