"""A second reading of the three formats: slow, plain, and without a line of the product.

Written from the description of the formats alone, on the standard library's JSON. It
reads a whole file at once, keeps everything, and looks at it as often as it likes.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fractions import Fraction

MAX = 2**63 - 1
SPACES_AND_NULS = " \t\r\n\0"


class Number(str):
    """A JSON number as it was written."""

    __slots__ = ()


@dataclass
class Said:
    """One message."""

    role: str
    kind: str
    text: str
    tool_name: str = ""
    call_id: str = ""
    is_error: bool = False
    offset: int = 0
    index: int = 0
    ts: int | None = None
    model: str = ""
    sidechain: bool = False


@dataclass
class Record:
    """One object of the file and where its line starts."""

    offset: int
    value: dict
    said: list[Said] = field(default_factory=list)


def read_records(data: bytes) -> list[Record]:
    """Return every whole object of every line, up to the first damage of the line."""
    records = []
    offset = 0
    for line in data.split(b"\n"):
        records += [Record(offset, value) for value in objects_of(line)]
        offset += len(line) + 1
    return records


def objects_of(line: bytes) -> list[dict]:
    def refuse(name):
        raise ValueError(name)

    decoder = json.JSONDecoder(
        strict=False, parse_int=Number, parse_float=Number, parse_constant=refuse
    )
    text = line.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").strip(SPACES_AND_NULS)
    values = []
    while text:
        try:
            value, end = decoder.raw_decode(text)
        except (ValueError, RecursionError):
            break
        if not isinstance(value, dict):
            break
        values.append(value)
        text = text[end:].lstrip(SPACES_AND_NULS)
    return values


def clean(text: str) -> str:
    joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return joined.replace("\0", "\ufffd")


def string(value: object) -> str:
    return clean(value) if type(value) is str else ""


def member(value: object, name: str) -> object:
    return value.get(name) if isinstance(value, dict) else None


def text_at(value: object, *path: str) -> str:
    for name in path:
        value = member(value, name)
    return string(value)


def an_id(text: str) -> str:
    return text if re.fullmatch("[A-Za-z0-9][A-Za-z0-9._-]{0,127}", text) else ""


def directory(value: object, *path: str) -> str:
    """Return a working directory, none for one whose bytes were damaged."""
    cwd = text_at(value, *path, "cwd")
    return "" if "\ufffd" in cwd else cwd


def count(value: object) -> int | None:
    if type(value) is str:
        number = int(value) if re.fullmatch("[0-9]{1,19}", value) else -1
    elif isinstance(value, Number):
        exact = Fraction(str(value)) if len(value) < 400 else Fraction(-1)
        number = int(exact) if exact.denominator == 1 else -1
    else:
        return None
    return number if 0 <= number <= MAX else None


def moment(value: object) -> int | None:
    """Return microseconds since 1970."""
    if type(value) is str:
        text = value.strip()
        if re.fullmatch("[0-9]+", text):
            return moment(Number(text))
        try:
            when = datetime.fromisoformat(text.upper())
        except ValueError:
            return None
        when = when if when.tzinfo else when.replace(tzinfo=UTC)
        time = (when - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    elif isinstance(value, Number):
        number = Fraction(str(value))
        if number < 0:
            return None
        scale = 10**6 if number < 10**11 else 10**3 if number < 10**14 else 1
        time = round(number * scale)
    else:
        return None
    return time if 0 <= time < 253402300800 * 10**6 else None


def compact(value: object) -> str:
    """Return a value as compact JSON; object and array by hand, to keep the numbers."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, dict):
        inside = ",".join(f"{compact(k)}:{compact(v)}" for k, v in value.items())
        return "{" + inside + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(compact, value)) + "]"
    dumped = json.dumps(value, ensure_ascii=False)
    return dumped.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def input_text(value: object, *, present: bool) -> str:
    if not present:
        return ""
    return string(value) if type(value) is str else compact(value)


def output_text(value: object) -> str:
    if type(value) is str:
        return string(value)
    if isinstance(value, list):
        parts = []
        for part in value:
            if type(part) is str:
                parts.append(string(part))
            elif isinstance(part, dict) and type(part.get("text")) is str:
                parts.append(string(part["text"]))
            elif isinstance(part, dict) and string(part.get("type")):
                kind = string(part["type"])
                if not kind.endswith("text"):
                    parts.append("[" + kind.removeprefix("input_") + "]")
        return "\n".join(parts)
    return "" if value is None else compact(value)


def cut_bytes(text: str, size: int) -> str:
    return text.encode()[:size].decode("utf-8", "ignore")


def prompt(text: str) -> str:
    return cut_bytes(text.strip(), 4096)


def title(text: str) -> str:
    for raw in text.split("\n"):
        bare = re.sub(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)", "", raw)
        bare = "".join(c for c in bare if c.isspace() or not (ord(c) < 32 or 127 <= ord(c) < 160))
        folded = " ".join(bare.split())
        if folded:
            return folded[:200].rstrip()
    return ""


def span(said: list[Said]) -> tuple[int | None, int | None]:
    times = [one.ts for one in said if one.role != "system" and one.ts is not None]
    return (min(times), max(times)) if times else (None, None)


def counts(said: list[Said]) -> dict:
    return {
        "message_count": sum(one.role != "system" for one in said),
        "tool_call_count": sum(one.kind == "tool_call" for one in said),
        "prompt_count": sum(
            one.role == "user" and one.kind == "text" and not one.sidechain for one in said
        ),
    }


def number_messages(records: list[Record]) -> list[Said]:
    """Give every message its line's offset and its place in the line."""
    said, index = [], {}
    for record in records:
        for one in record.said:
            one.offset = record.offset
            one.index = index.get(record.offset, 0)
            index[record.offset] = one.index + 1
            said.append(one)
    return said


def first_prompt_of(record: Record, pick=lambda text: text) -> str:
    texts = [
        prompt(pick(one.text))
        for one in record.said
        if one.role == "user" and one.kind == "text" and not one.sidechain
    ]
    texts = [text for text in texts if text]
    words = [text for text in texts if text not in {"[image]", "[document]"}]
    return (words or texts or [""])[0]


def distinct(names) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name))


def as_tokens(values) -> tuple[int, int, int, int]:
    """(input, output, cache read, cache write)."""
    return tuple(sum(column) for column in zip((0, 0, 0, 0), *values, strict=True))


def as_blocks(content: object) -> list[object]:
    """Return a message's content as blocks, bare strings as text blocks."""
    if type(content) is str:
        content = [content]
    blocks = content if isinstance(content, list) else []
    return [{"type": "text", "text": b} if type(b) is str else b for b in blocks]


def payload(record: Record) -> dict:
    body = record.value.get("payload")
    return body if isinstance(body, dict) else {}
