"""A whole conversation told with a command line tool, and found again after a restart."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import tools
from tests.wire.process import Process

ROOT = Path(__file__).resolve().parents[2]
STORE = "flue.store.v1.Store"
IMAGE = "data:image/png;base64,iVBORw0KGgo="
SAID = [
    {"role": "user", "content": "Don't drop the 数据库DB table\0now 𠮷", "images": [IMAGE, ""]},
    {
        "role": "assistant",
        "provider": "openai",
        "toolCalls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "run", "arguments": '{ "sql" : "<&>" , "n": 1.50 }'},
                "extra": {"thought": '"Zm9v"', "function.strict": "true", "more": '{\n "a": 1\n}'},
            }
        ],
    },
    {"role": "tool", "toolCallId": "c1", "name": "run", "content": "the table is gone"},
    {"role": "system", "name": "kram:compaction_summary", "content": "a table was dropped"},
    {"role": "assistant", "content": "The table is safe."},
]


def buf(socket, method):
    command = [Path(sys.executable).with_name("buf"), "curl", "--protocol", "grpc"]
    command += ["--http2-prior-knowledge", "--unix-socket", socket, "--data", "@-"]
    return [*command, f"http://localhost/{STORE}/{method}"]


def grpcurl(socket, method):
    # With its descriptors it spells names as protobuf JSON does.
    options = ["-plaintext", "-protoset", ROOT / "generated/flue.binpb", "-d", "@"]
    return [tools.grpcurl(), *options, f"unix:{socket}", f"{STORE}/{method}"]


def documents(text):
    decoder, rest = json.JSONDecoder(), text.lstrip()
    while rest:
        document, end = decoder.raw_decode(rest)
        yield document
        rest = rest[end:].lstrip()


@pytest.fixture(params=[buf, grpcurl])
def call(request):
    """Make a call with a tool; return its responses."""

    def made(server, method, **fields):
        done = subprocess.run(
            list(map(str, request.param(server.socket, method))),
            input=json.dumps(fields),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return list(documents(done.stdout))

    return made


@pytest.fixture
def serve(short_path):
    """Start the server anew on the same data."""
    started = []

    def start():
        started.append(Process(short_path, "serve", "--access-log", "off"))
        return started[-1].ready()

    yield start
    for each in started:
        if not each.process.stdout.closed:
            each.kill()


def tell(call, server):
    call(server, "CreateSession", id="a talk", title="Tables 数据库", requestId="r1")
    call(server, "CreateSession", title="subagent: dig")
    call(server, "AppendMessage", sessionId="a talk", message=SAID[0], requestId="r2")
    call(server, "AppendMessages", sessionId="a talk", messages=SAID[1:], requestId="r3")
    call(server, "WriteMemoryEntry", scope="_global", content="prefers foo-bar\0数")
    call(server, "WriteMemoryEntry", scope="/p", content="a pinned one", pinned=True)


def look(call, server):
    """Ask for everything in every way."""
    return {
        "sessions": call(server, "ListSessions"),
        "messages": call(server, "ListMessages", sessionId="a talk"),
        "search": call(server, "SearchMessages", query="TABLE", window=1, includeImages=True),
        "cjk": call(server, "SearchMessages", query="据库DB 𠮷"),
        "memory": call(server, "RecentMemory", scopes=["_global", "/p"]),
        "found": call(server, "SearchMemory", scopes=["_global"], query="foo-bar"),
        "size": call(server, "ScopeMemorySize", scope="_global"),
        "repeated": call(
            server, "AppendMessage", sessionId="a talk", message=SAID[0], requestId="r2"
        ),
    }


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def test_a_conversation_is_found_unchanged_after_a_restart(call, serve, end):
    first = serve()
    tell(call, first)
    before = look(call, first)
    assert titles(before["sessions"]) == ["Tables 数据库", "subagent: dig"]
    [messages] = [page["messages"] for page in before["messages"]]
    assert list(map(as_said, messages)) == SAID
    assert [message["id"] for message in messages] == ["1", "2", "3", "4", "5"]
    assert found(before["search"]) == [("5", ["4", "5"]), ("1", ["1", "2"])]
    assert before["search"][0]["results"][1]["message"]["images"] == [IMAGE, ""]
    assert found(before["cjk"]) == [("1", ["1", "2", "3", "4"])]
    assert [entry["id"] for entry in before["memory"][0]["entries"]] == ["2", "1"]
    assert [entry["id"] for entry in before["found"][0]["entries"]] == ["1"]
    assert before["size"] == [{"characters": "17"}]
    assert before["repeated"] == [{"message": messages[0]}]

    first.signal(end)
    first.end()
    second = serve()
    assert look(call, second) == before

    second.signal(signal.SIGTERM)
    assert second.end()[0] == 0
    assert shell(second.socket.with_name("store.db")) == [
        "ok",
        "Tables 数据库",
        "user|assistant|tool|system|assistant",
    ]


def titles(pages):
    return [session["title"] for page in pages for session in page["sessions"]]


def as_said(message):
    assert message["sessionId"] == "a talk"
    return {k: v for k, v in message.items() if k not in {"id", "sessionId", "createdAt"}}


def found(pages):
    return [
        (result["message"]["id"], [message["id"] for message in result["window"]])
        for page in pages
        for result in page["results"]
    ]


def shell(path):
    statements = (
        "PRAGMA integrity_check; SELECT title FROM sessions WHERE id = 'a talk';"
        "SELECT group_concat(role, '|') FROM (SELECT role FROM messages ORDER BY id);"
    )
    done = subprocess.run(
        [tools.tool("sqlite3"), str(path), statements], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()
