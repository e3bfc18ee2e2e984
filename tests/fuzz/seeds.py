"""Where fuzzing begins: the kept inputs, and for transcripts the fixtures."""

from __future__ import annotations

from pathlib import Path

from tests.fuzz.targets import TOOLS
from tests.wire.security.contract_calls import RPCS

CORPUS = Path(__file__).parent / "corpus"
FIXTURES = Path(__file__).parents[1] / "fixtures"
CURSORS = (b"\x91\x07", b"\x92\x07\xa1s", b"\x94\x01\x02\x03\xa1s", b"\x95\xcb" + b"\x7f" * 8)
QUERIES = ('one two\x1f"one two"', "版本2.0\x1f版本", "don't\x1fdo* -not", "a\x1b[1mb\x1fa")


def kept(name: str) -> list[bytes]:
    """Return the inputs that once found something, and some that reach far."""
    return [path.read_bytes() for path in sorted((CORPUS / name).glob("*"))]


def seeds(name: str) -> list[bytes]:
    """Return all inputs to begin with."""
    return kept(name) + _made(name)


def _made(name: str) -> list[bytes]:
    if name in ("adapters", "pages", "lines"):
        return [
            bytes((TOOLS.index(path.parent.name), 128, 3)) + path.read_bytes()
            for path in sorted(FIXTURES.glob("*/*.jsonl"))
        ]
    if name == "queries":
        return [query.encode() for query in QUERIES]
    if name == "tokens":
        return list(CURSORS)
    if name == "requests":
        return [
            bytes((number << 1 | 1,)) + rpc.request().SerializeToString()
            for number, rpc in enumerate(RPCS)
        ] + [bytes((number << 1, kind, 0x91, 1)) for number in range(22) for kind in range(9)]
    return []
