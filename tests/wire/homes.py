"""Small homes with transcripts that Claude Code could have written."""

from __future__ import annotations

import json
import uuid


def session_id(number):
    return str(uuid.UUID(int=number + 1))


def user_line(number, text, second=0, **extra):
    line = {
        "type": "user",
        "uuid": f"u{second}",
        "sessionId": session_id(number),
        "cwd": "/srv/work",
        "timestamp": f"2025-01-{number % 28 + 1:02}T10:{second // 60:02}:{second % 60:02}.000Z",
        "message": {"role": "user", "content": text},
    }
    return json.dumps(line | extra, ensure_ascii=False) + "\n"


def reply_line(number, text, second=1):
    line = json.loads(user_line(number, text, second))
    line |= {"type": "assistant", "requestId": f"r{second}"}
    line["message"] = {
        "id": f"m{second}",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": [{"type": "text", "text": text}],
        "usage": {"input_tokens": 3, "output_tokens": 4},
    }
    return json.dumps(line, ensure_ascii=False) + "\n"


def transcript_path(home, number):
    folder = home / ".claude" / "projects" / "-srv-work"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{session_id(number)}.jsonl"


def write_session(home, number, lines=None):
    """Write one transcript; two lines when none are given."""
    text = "".join(lines or (user_line(number, f"question {number}"), reply_line(number, "yes")))
    transcript_path(home, number).write_text(text, encoding="utf-8")
