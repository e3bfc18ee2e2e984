"""Hand-written lines of Codex."""

from __future__ import annotations

from tests.unit.agentindex.reading import UUID

EIGHT = 1_782_979_200_000_000  # 2026-07-02T08:00:00Z


def stamp(at):
    """RFC 3339, ``at`` seconds after eight; may be before it."""
    seconds = 8 * 3600 + at
    whole, rest = divmod(seconds, 1)
    hours, minutes = divmod(int(whole), 3600)
    return f"2026-07-02T{hours:02}:{minutes // 60:02}:{minutes % 60:02}.{round(rest * 1000):03}Z"


def line(kind, at=0, payload=None, /, **members):
    return {"timestamp": stamp(at), "type": kind, "payload": payload or {}} | members


def meta(at=0, session_id=UUID, **members):
    payload = {"id": session_id, "cwd": "/home/dev/shop", "cli_version": "0.145.0"}
    return line("session_meta", at, payload | {"git": {"branch": "main"}} | members)


def turn(model="gpt-5.5", at=0, **members):
    return line("turn_context", at, {"model": model, "summary": "auto"} | members)


def item(kind, at=0, /, **members):
    return line("response_item", at, {"type": kind} | members)


def message(role, *texts, at=0):
    kind = "output_text" if role == "assistant" else "input_text"
    content = [text if isinstance(text, dict) else {"type": kind, "text": text} for text in texts]
    return item("message", at, role=role, content=content)


def event(kind, at=0, /, **members):
    return line("event_msg", at, {"type": kind} | members)


def totals(whole=0, cached=0, output=0, write=0):
    return {
        "input_tokens": whole,
        "cached_input_tokens": cached,
        "cache_write_input_tokens": write,
        "output_tokens": output,
        "reasoning_output_tokens": output // 2,
        "total_tokens": whole + output,
    }


def count(total, at=0, last=None):
    info = {"total_token_usage": total, "last_token_usage": last}
    return event("token_count", at, info=info, rate_limits=None)
