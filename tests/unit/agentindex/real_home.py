"""A home with small transcripts of the real tools, written by hand."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def line(**members):
    return json.dumps(members, separators=(",", ":")).encode() + b"\n"


def claude_prompt(text="Why does it time out?", second=0):
    return line(
        type="user",
        timestamp=f"2026-03-01T09:00:{second:02}.000Z",
        cwd="/home/dev/shop",
        message={"role": "user", "content": text},
    )


def claude_answer(output=61, second=4, request="req_1", model="claude-sonnet-4-5"):
    return line(
        type="assistant",
        timestamp=f"2026-03-01T09:00:{second:02}.000Z",
        requestId=request,
        message={
            "id": f"msg_{request}",
            "role": "assistant",
            "model": model,
            "content": [{"type": "text", "text": "One second is too short."}],
            "usage": {
                "input_tokens": 4,
                "output_tokens": output,
                "cache_read_input_tokens": 900,
                "cache_creation_input_tokens": 120,
            },
        },
    )


def codex_lines(session_id):
    def said(kind, **payload):
        return line(timestamp="2026-07-02T08:00:00.100Z", type=kind, payload=payload)

    prompt = [{"type": "input_text", "text": "Port this to Rust"}]
    answer = [{"type": "output_text", "text": "Done."}]
    total = {"input_tokens": 100, "cached_input_tokens": 30, "output_tokens": 7}
    return [
        said("session_meta", id=session_id, cwd="/home/dev/port", cli_version="0.145.0"),
        said("turn_context", model="gpt-5.5", cwd="/home/dev/port"),
        said("response_item", type="message", role="user", content=prompt),
        said("response_item", type="message", role="assistant", content=answer),
        said("event_msg", type="token_count", info={"total_token_usage": total}),
    ]


def pi_lines(session_id):
    def said(**message):
        return line(
            type="message", id="0000000a", timestamp="2026-01-02T03:04:06.000Z", message=message
        )

    usage = {"input": 10, "output": 20, "cacheRead": 5, "cacheWrite": 2, "cost": {"total": 0.25}}
    return [
        line(type="session", version=3, id=session_id, cwd="/home/dev/pi"),
        said(role="user", content=[{"type": "text", "text": "hello"}]),
        line(
            type="message",
            id="0000000b",
            timestamp="2026-01-02T03:04:07.000Z",
            message={
                "role": "assistant",
                "model": "claude-opus-4-5",
                "content": [{"type": "text", "text": "hi"}],
                "usage": usage,
            },
        ),
    ]


def session_id(number):
    return str(uuid.UUID(int=number + (4 << 76) + (8 << 60)))


class RealHome:
    """``path`` is the home, ``directory`` where its index lies."""

    def __init__(self, base: Path) -> None:
        self.path = base / "home"
        self.directory = base / "config" / "agents"
        self.path.mkdir()

    def claude(self, number, *lines, folder="-home-dev-shop", below=""):
        name = below or f"{session_id(number)}.jsonl"
        return self.write(f".claude/projects/{folder}/{name}", *lines)

    def codex(self, number):
        name = f"rollout-2026-07-02T08-00-00-{session_id(number)}.jsonl"
        return self.write(f".codex/sessions/2026/07/02/{name}", *codex_lines(session_id(number)))

    def pi(self, number):
        name = f"2026-01-02T03-04-05-000Z_{session_id(number)}.jsonl"
        lines = pi_lines(session_id(number))
        return self.write(f".pi/agent/sessions/--home-dev-pi--/{name}", *lines)

    def write(self, name, *lines):
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(lines))
        return path

    def fill(self, count):
        """Write ``count`` sessions of each tool."""
        for number in range(count):
            self.claude(number, claude_prompt(), claude_answer())
            self.codex(1000 + number)
            self.pi(2000 + number)
