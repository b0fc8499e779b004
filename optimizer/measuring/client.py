"""A closed-loop client that measures throughput and draft acceptance on a server.

The server must be compatible with the OpenAI API. Each worker of the client sends its next request
when its previous request has been answered. The tokens of a request are assumed to be spread evenly
over its duration. Only tokens from the period in which all workers are being served are counted.
The variation between parts of this period gives the uncertainty of the mean.
"""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

import numpy as np

from specopt.instances.acceptance.prometheus import counters, is_scrape
from specopt.models.arguments import integer, number, positive
from specopt.models.errors import InvalidInput, ServerFailed
from specopt.models.load import PARTS, Load

PROMPTS = tuple(
    f"Tell a story in which the number {k} matters, with a beginning and an end."
    for k in range(1, 65)
)
MANY = 10**9

MAX_LINE_BYTES = 2**20
"""Maximum length of a line in a server's response, in bytes.

The length is limited because a server may send a line that never ends.
"""


@dataclass(frozen=True, kw_only=True)
class Client:
    """A client that generates load on a server.

    Each load has a fixed number of workers, each of which sends one request at a time.

    Parameters
    ----------
    endpoint
        Base URL of the server.
    model
        Name of the model; None for the first model that the server lists.
    prompts
        Prompts of the requests, used in turn.
    max_tokens
        Numbers of tokens per response, used in turn.
    seconds
        Duration of each load, in seconds.
    requests
        Maximum number of requests per load. Each worker sends at least one request.
    patience
        Time limit for a request, in seconds, from its start to the end of its response.
    failures
        Maximum fraction of failed requests per load. A request counts as failed only after a second
        attempt.
    """

    endpoint: str
    model: str | None = None
    prompts: Sequence[str] = PROMPTS
    max_tokens: Sequence[int] = (256,)
    seconds: float = 60.0
    patience: float = 600.0
    requests: int = MANY
    failures: float = 0.05

    def __post_init__(self) -> None:
        found = None
        with suppress(ValueError):
            url = urlsplit(self.endpoint)
            found = url.scheme in ("http", "https") and url.hostname and url.port != 0
        if not found:
            raise InvalidInput(
                "endpoint: expected an address such as http://127.0.0.1:8000, got"
                f" {self.endpoint!r}"
            )
        integer("prompts", len(self.prompts), 1)
        integer("tokens", min(self.max_tokens, default=0), 1)
        integer("requests", self.requests, 1)
        for name in ("seconds", "patience"):
            positive(name, getattr(self, name))
        number("failures", self.failures, 0, 1)

    def models(self) -> list[str]:
        """Return the names of the models on the server, and raise an error if there are none."""
        with self._answer("GET", "/v1/models") as answer:
            if found := [str(entry["id"]) for entry in json.loads(answer.read())["data"]]:
                return found
        raise ServerFailed(f"{self.endpoint}/v1/models: expected a model, got none")

    def run(self, concurrency: int) -> Load:
        """Run a load with `concurrency` concurrent requests and return its measurements.

        Raises
        ------
        ServerFailed
            If too many requests fail, or the server never serves all workers concurrently.
        """
        model = self.model or self.models()[0]
        before, until = self.counted(), time.monotonic() + self.seconds
        done: list[list[tuple[float, float, float, int]]] = [[] for _ in range(concurrency)]
        failures: list[ServerFailed] = []

        def work(worker: int) -> None:
            number = worker
            while len(failures) <= max(concurrency, self.failures * sum(map(len, done))) and (
                not done[worker] or (time.monotonic() < until and number < self.requests)
            ):
                try:
                    done[worker].append(self._tried_twice(model, number))
                except ServerFailed as error:
                    failures.append(error)
                number += concurrency

        threads = [
            threading.Thread(target=work, args=(k,), daemon=True) for k in range(concurrency)
        ]
        for call in (threading.Thread.start, threading.Thread.join):
            for thread in threads:
                call(thread)
        asked = sum(map(len, done)) + len(failures)
        if not all(done) or len(failures) > self.failures * asked:
            failed = f"{len(failures)} of {asked} requests failed"
            raise ServerFailed(
                f"at concurrency {concurrency}: {failed}, the first with: {failures[0]}"
            )
        first, last = max(one[0][1] for one in done), min(one[-1][2] for one in done)
        if first >= last:
            raise ServerFailed(
                f"at concurrency {concurrency}: the server never served all requests"
                " concurrently; use a longer duration"
            )
        sent, begin, end, tokens = np.array([one for several in done for one in several]).T
        shares = np.clip(
            (np.linspace(first, last, PARTS + 1)[:, None] - sent) / (end - sent), 0.0, 1.0
        )
        speeds = np.diff(shares @ tokens) * PARTS / (last - first)
        speed, deviation = float(speeds.mean()), float(speeds.std(ddof=1)) / PARTS**0.5
        length = (
            1.0 + sum(counted[2:]) / counted[0] if any(counted := self.counted(before)) else None
        )
        wait = float((begin - sent).mean())
        return Load(
            speed, wait, length, deviation / speed, counted, requests=asked, failed=len(failures)
        )

    def counted(self, before: Sequence[float] = ()) -> tuple[float, ...]:
        """Return the server's counts of drafts, drafted tokens, and accepted tokens by position.

        If `before` contains an earlier reading, return the increases since that reading. The result
        is empty if the server does not count drafts.
        """
        with suppress(ServerFailed), self._answer("GET", "/metrics") as answer:
            if is_scrape(text := answer.read().decode(errors="replace")):
                found = counters(text, f"{self.endpoint}/metrics")
                now = found.drafts, found.draft_tokens, *found.accepted_at
                return tuple(np.subtract(now, before or 0.0).tolist())
        return ()

    def _tried_twice(self, model: str, number: int) -> tuple[float, float, float, int]:
        until = time.monotonic() + self.patience
        try:
            return self._request(model, number)
        except ServerFailed:
            if time.monotonic() >= until:  # a second attempt would take as long as the first
                raise
        return self._request(model, number)

    def _request(self, model: str, number: int) -> tuple[float, float, float, int]:
        """Send a request and return its times and the number of generated tokens.

        The first three items are the times at which the request was sent, the first token arrived
        and the response ended.
        """
        asked = {
            "model": model,
            "prompt": self.prompts[number % len(self.prompts)],
            "max_tokens": self.max_tokens[number % len(self.max_tokens)],
            "temperature": 0.0,
            "stream": True,
            "ignore_eos": True,
            "stream_options": {"include_usage": True},
        }
        sent, first, tokens = time.monotonic(), 0.0, 0
        with self._answer("POST", "/v1/completions", asked) as answer:
            while line := answer.readline(MAX_LINE_BYTES):
                if len(line) == MAX_LINE_BYTES:
                    raise ValueError(f"expected lines of fewer than {MAX_LINE_BYTES:,} bytes")
                if line.startswith(b"data:") and line[5:].strip() != b"[DONE]":
                    data = json.loads(line[5:])
                    if "error" in data:
                        raise ValueError(data["error"])
                    tokens = (data.get("usage") or {}).get("completion_tokens", tokens)
                    first = first or (time.monotonic() if data.get("choices") else 0.0)
            if not (1 <= tokens < 1e9 and first):
                raise ValueError("expected a token stream that ends with a usage report")
        return sent, first, time.monotonic(), int(tokens)

    @contextmanager
    def _answer(
        self, verb: str, path: str, body: object = None
    ) -> Iterator[http.client.HTTPResponse]:
        """Send a request and yield its response. Every failure raises `ServerFailed`."""
        url, where = urlsplit(self.endpoint), f"{self.endpoint}{path}"
        kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
        connection = kind(url.netloc, timeout=self.patience)
        base = url.path.rstrip("/").removesuffix("/v1")
        text = None if body is None else json.dumps(body)
        until = time.monotonic() + self.patience
        try:
            with _ended_in_time(connection, until):
                connection.request(verb, base + path, text, {"Content-Type": "application/json"})
                with closing(connection.getresponse()) as answer:
                    if answer.status != http.HTTPStatus.OK:
                        said = answer.read(300).decode(errors="replace")
                        raise ServerFailed(
                            f"{where}: {answer.status} {answer.reason}: {' '.join(said.split())}"
                        )
                    yield answer
                if time.monotonic() >= until:  # the answer may be incomplete
                    raise TimeoutError
        except (
            OSError,
            http.client.HTTPException,
            ValueError,
            LookupError,
            TypeError,
            AttributeError,
        ) as error:
            said = getattr(error, "strerror", None) or str(error) or "the connection ended"
            if time.monotonic() >= until:
                said = f"no answer within {self.patience:g} s"
            elif isinstance(error, json.JSONDecodeError | LookupError | TypeError | AttributeError):
                said = "expected JSON in the format of OpenAI's API"
            raise ServerFailed(f"{where}: {said[:200]}") from None


@contextmanager
def _ended_in_time(connection: http.client.HTTPConnection, until: float) -> Iterator[None]:
    """Open a connection, and close it when the enclosed code ends or at the time `until`."""
    with closing(connection):
        connection.connect()
        limit = threading.Timer(until - time.monotonic(), _end, [connection.sock])
        limit.daemon = True
        limit.start()
        try:
            yield
        finally:
            limit.cancel()


def _end(connected: socket.socket) -> None:
    with suppress(OSError):
        connected.shutdown(socket.SHUT_RDWR)
