"""Hostile strings in every string field of every RPC: no fault, no file, no path."""

from __future__ import annotations

import grpc
import pytest

from tests.wire.security.contract_calls import RPCS, everything_said, prepare

CANARY = "canary-of-a-file-outside"
ALLOWED = {
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.ALREADY_EXISTS,
    grpc.StatusCode.OUT_OF_RANGE,
}
HOSTILE = [
    "../../../secret",
    "../../../secret.jsonl",
    "..",
    ".",
    "/",
    "/etc/passwd",
    "~/.ssh/id_rsa",
    "%2e%2e%2f%2e%2e%2fsecret",
    "..\\..\\secret",
    "-rf",
    "$(touch made-by-a-shell)",
    "`touch made-by-a-shell`",
    "a\x00b",
    "a\nb\r\n\x1b[31mc",
    "' OR 1=1 --",
    '"; DROP TABLE sessions; --',
    "%s%n%p{0}{self}",
    "\u202eevil\u200b",
    "\ufffe\uffff\U0010ffff",
    "a" * 100_000,
    "é" * 5_000,
    "*" * 3_000,
    '"' * 3_001,
    "(" * 3_000,
]
CASES = [(rpc, field) for rpc in RPCS for field in rpc.string_fields()]


@pytest.fixture(scope="module")
def channel(product):
    (product.directory / "secret.jsonl").write_text(f'{{"type":"user","text":"{CANARY}"}}\n')
    with product.channel() as channel:
        prepare(channel)
        yield channel


@pytest.mark.parametrize(
    ("rpc", "field"), CASES, ids=[f"{rpc.name}.{field.name}" for rpc, field in CASES]
)
def test_no_string_does_harm(product, channel, rpc, field):
    spoken = [*HOSTILE, str(product.directory / "secret.jsonl"), str(product.data / "store.db")]
    for value in spoken:
        request = rpc.request()
        if field.is_repeated:
            del getattr(request, field.name)[:]
            getattr(request, field.name).extend([value, value])
        else:
            setattr(request, field.name, value)
        responses, error = rpc.attempt(channel, request)
        if error is None:
            assert CANARY not in str(responses)
            continue
        assert error.code() in ALLOWED, (value[:60], error)
        said = everything_said(error)
        assert CANARY.encode() not in said
        if not value.startswith(str(product.directory)):
            assert str(product.directory).encode() not in said


def test_nothing_was_made_outside(product, channel):
    names = {path.name for path in product.directory.iterdir()}
    assert names <= {"home", "data", "run", "log", "config", "nobody", "secret.jsonl"}
    assert not list(product.directory.rglob("made-by-a-shell"))
    transcripts = [path for path in product.home.rglob("*") if path.is_file()]
    assert len(transcripts) == 1
