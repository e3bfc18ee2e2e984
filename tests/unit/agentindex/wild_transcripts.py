"""Transcripts of all tools as the strangest JSON writers and the worst disks make them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

LETTERS = (
    *"aeinrstubfkKzZ019",
    *"\u212aİıßẞſéÉΣσςΩ\u2126Å\u212bǅЖж",
    *"中文日本한😀𠮷\U0001e943",
    *'"\\/{}[]:, $',
    *"\t\n\b\f\r\x01\x0b\x1b\x1f\x7f\x80\xa0\u2028\ufeff\ufffd",
)
WORDS = (
    "\tab",
    "\fan",
    "\x01xy",
    "timeout",
    "token",
    "don't",
    "u0001",
    "document",
    "image",
    "naïve",
    "git",
    "  ",
    "<b>&",
)


def text(random: Random) -> str:
    pieces = random.choices((*LETTERS, *WORDS), k=random.randint(1, 8))
    return "".join(pieces)


def _ascii(text, random):
    return json.dumps(text)


def _raw(text, random):
    return json.dumps(text, ensure_ascii=False)


def _go(text, random):
    quoted = json.dumps(text, ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        quoted = quoted.replace(character, f"\\u{ord(character):04x}")
    return quoted


def _wild(text, random):
    return '"' + "".join(_wild_character(character, random) for character in text) + '"'


def _wild_character(character, random):
    quoted = json.dumps(character, ensure_ascii=False)[1:-1]
    if character == "/" and random.random() < 0.5:
        return "\\/"
    if random.random() < 0.6:
        return quoted
    units = character.encode("utf-16-be")
    escapes = [f"\\u{units[i] << 8 | units[i + 1]:04x}" for i in range(0, len(units), 2)]
    return "".join("\\u" + e[2:].upper() if random.random() < 0.5 else e for e in escapes)


WRITERS = (_ascii, _raw, _go, _wild)


def dump(value, writer, random):
    """Write JSON with this writer's strings, and white space as it comes."""
    blank = random.choice(("", "", "", " ", "\t"))
    if isinstance(value, str):
        return writer(value, random)
    if isinstance(value, dict):
        members = (
            f"{json.dumps(key)}{blank}:{blank}{dump(item, writer, random)}"
            for key, item in value.items()
        )
        return "{" + f"{blank},{blank}".join(members) + "}"
    if isinstance(value, list):
        return "[" + f",{blank}".join(dump(item, writer, random) for item in value) + "]"
    return json.dumps(value)


def _tool_input(random):
    return random.choice(
        [
            {"command": text(random)},
            {text(random): [text(random), {"n": 1.50, "deep": {"t": text(random)}}, None, True]},
            {"json": json.dumps({"in": text(random)}, ensure_ascii=random.random() < 0.5)},
        ]
    )


def _claude(random):
    blocks = [
        {"type": "text", "text": text(random)},
        {"type": "thinking", "thinking": text(random)},
        {"type": "tool_use", "id": "t1", "name": "Bash", "input": _tool_input(random)},
        {"type": "tool_result", "tool_use_id": "t1", "content": text(random)},
        {
            "type": "tool_result",
            "tool_use_id": "t1",
            "content": [{"type": "text", "text": text(random)}, {"type": "image"}, text(random)],
        },
        {"type": "tool_result", "tool_use_id": "t1", "content": {"x": text(random), "n": 1e3}},
        {"type": "image"},
        {"type": "document"},
    ]
    content = random.choice([text(random), random.choices(blocks, k=random.randint(1, 3))])
    role = random.choice(["user", "assistant"])
    return random.choice(
        [
            {"type": role, "message": {"role": role, "content": content}},
            {"type": "system", "content": text(random)},
            {"type": "summary", "summary": text(random)},
        ]
    )


def _codex(random):
    blocks = [
        {"type": "input_text", "text": text(random)},
        {"type": "input_image"},
        {"type": "input_file"},
    ]
    item = random.choice(
        [
            {"type": "message", "role": "user", "content": random.choices(blocks, k=2)},
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": text(random)}],
            },
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": text(random)}] * 2},
            {"type": "function_call", "name": "f", "arguments": json.dumps({"c": text(random)})},
            {"type": "function_call", "name": "f", "arguments": _tool_input(random)},
            {"type": "function_call_output", "output": text(random)},
            {"type": "function_call_output", "output": {"content": text(random), "success": True}},
            {
                "type": "function_call_output",
                "output": [{"type": "input_text", "text": text(random)}, {"type": "input_file"}],
            },
            {"type": "web_search_call", "action": _tool_input(random)},
            {"type": "image_generation_call"},
        ]
    )
    return {"type": "response_item", "payload": item}


def _pi(random):
    message = random.choice(
        [
            {"role": "user", "content": [{"type": "text", "text": text(random)}]},
            {
                "role": "user",
                "content": [{"type": "image"}, {"type": "text", "text": text(random)}],
            },
            {"role": "user", "content": text(random)},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": text(random)},
                    {"type": "toolCall", "name": "f", "arguments": _tool_input(random)},
                ],
            },
            {"role": "toolResult", "content": [{"type": "text", "text": text(random)}]},
            {"role": "bashExecution", "command": text(random), "output": text(random)},
        ]
    )
    return random.choice(
        [
            {"type": "message", "message": message},
            {"type": "compaction", "summary": text(random)},
            {"type": "custom_message", "content": text(random)},
        ]
    )


RECORDS = {"claude": _claude, "codex": _codex, "pi": _pi}


def line(tool: str, random: Random) -> bytes:
    """Write one line without its newline, sound or damaged."""
    count = random.choice((1, 1, 1, 2))
    writer = random.choice(WRITERS)
    record = RECORDS[tool]
    data = "".join(dump(record(random), writer, random) for _ in range(count)).encode()
    for _ in range(random.choice((0, 0, 0, 1, 2))):
        data = _damaged(data, random)
    return data.replace(b"\n", b" ") + random.choice((b"", b"", b"\r"))


def _damaged(data, random):
    at = random.randrange(len(data) + 1)
    damage = random.choice(
        [
            *(b"\xff", b"\xed\xa0\xbd\xed\xb8\x80", b"\xc3", b"\xef\xbb\xbf"),
            *(b"\0", b"\t", b"\x01", b"\x0c", b"\x08", b"\r", b"}"),
            *(rb"\ud83d", rb"\udE00", rb"\u0000", rb"\u0009"),
        ]
    )
    if random.random() < 0.5:
        # Inside a string, where it changes the text and not only the syntax.
        at = max(data.rfind(b'"', 0, at) + 1, 0)
    return data[:at] + damage + data[at:]


def transcript(tool: str, random: Random) -> bytes:
    """Write some lines; the last may be unterminated or a fragment."""
    lines = [line(tool, random) for _ in range(random.randint(1, 4))]
    data = b"\n".join(lines)
    return random.choice((data + b"\n", data, data[: -random.randint(1, 9)]))
