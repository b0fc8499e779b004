"""A server with the endpoints of an engine and a known law, over real HTTP: `python
stand_in_server.py PORT K [FAULT]`.

A step takes 20 ms, 60 ms with more than two drafts, and yields a token and at most two accepted
ones. FAULT: refuses (answers 500), dies (at the first request), hangs (never answers one), silent
(never listens).
"""

from __future__ import annotations

import asyncio
import json
import os
import sys

FASTEST = 2
"""The draft length with the most tokens per second."""


def tokens_of_step(length: int) -> int:
    """Return the tokens that a step yields."""
    return 1 + min(length, 2)


def seconds_of_step(length: int) -> float:
    """Return the seconds that a step takes."""
    return 0.02 if length <= FASTEST else 0.06


class Server:
    """Answers requests, and counts drafts and what is accepted of them."""

    def __init__(self, length: int, fault: str) -> None:
        self.length, self.fault = length, fault
        self.drafts = self.active = 0
        self.accepted_at = [0] * length

    def seconds(self) -> float:
        """Return the seconds of a step of the requests that are answered now."""
        return seconds_of_step(self.length)

    def accepted(self) -> int:
        """Return how many drafts of a step are accepted."""
        return tokens_of_step(self.length) - 1

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request and close."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
        size = next(
            (int(line.split(":")[1]) for line in head if line.lower().startswith("content-length")),
            0,
        )
        body = await reader.readexactly(size)
        path = head[0].split()[1]
        if path == "/v1/models":
            self.plain(writer, json.dumps({"data": [{"id": "stand-in"}]}))
        elif path == "/metrics":
            self.plain(writer, self.metrics())
        elif self.fault == "refuses":
            self.plain(writer, '{"error": "out of memory"}', "500 Internal Server Error")
        elif self.fault == "dies":
            print("segmentation fault", flush=True)
            os._exit(1)
        elif self.fault == "hangs":
            await asyncio.sleep(3600)
        else:
            await self.stream(writer, json.loads(body))
        await writer.drain()
        writer.close()

    def plain(self, writer: asyncio.StreamWriter, text: str, status: str = "200 OK") -> None:
        """Write an answer in one piece."""
        head = f"HTTP/1.1 {status}\r\nContent-Length: {len(text)}\r\nConnection: close"
        writer.write(f"{head}\r\n\r\n{text}".encode())

    def metrics(self) -> str:
        """Return the counters as vLLM writes them."""
        if not self.length:
            return "# nothing is drafted\n"
        label = '{model_name="stand-in"}'
        values = {
            "drafts": self.drafts,
            "draft_tokens": self.drafts * self.length,
            "accepted_tokens": sum(self.accepted_at),
        }
        lines = [
            f"vllm:spec_decode_num_{name}_total{label} {value}" for name, value in values.items()
        ]
        name = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
        for position, count in enumerate(self.accepted_at):
            lines.append(f'{name}{{model_name="stand-in",position="{position}"}} {count}')
        return "\n".join(lines) + "\n"

    async def stream(self, writer: asyncio.StreamWriter, asked: dict[str, object]) -> None:
        """Write tokens step by step, then their usage."""
        assert asked["model"] == "stand-in" and asked["stream"] and asked["prompt"]
        self.active += 1
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n")
        now = asyncio.get_running_loop().time
        over, made, wanted = now(), 0, int(str(asked["max_tokens"]))
        while made < wanted:
            over += self.seconds()
            await asyncio.sleep(max(0.0, over - now()))
            made += 1
            if self.length:
                self.drafts += 1
                accepted = self.accepted()
                made += accepted
                for position in range(accepted):
                    self.accepted_at[position] += 1
            self.event(writer, {"choices": [{"text": "word"}], "usage": None})
        self.event(writer, {"choices": [], "usage": {"completion_tokens": made}})
        self.chunk(writer, b"data: [DONE]\n\n")
        writer.write(b"0\r\n\r\n")
        self.active -= 1

    def event(self, writer: asyncio.StreamWriter, data: object) -> None:
        """Write one event of the stream."""
        self.chunk(writer, f"data: {json.dumps(data)}\n\n".encode())

    def chunk(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        """Write one chunk."""
        writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")


async def serve(port: int, length: int, fault: str) -> None:
    """Serve until the process is ended."""
    if fault == "silent":
        await asyncio.sleep(3600)
    server = await asyncio.start_server(Server(length, fault).answer, "127.0.0.1", port)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    _, port, length, *fault = sys.argv
    asyncio.run(serve(int(port), 0 if length == "none" else int(length), fault[0] if fault else ""))
