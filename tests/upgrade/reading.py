"""A small database with something of everything, and what a Store says of it.

``python -m tests.upgrade.reading`` keeps one for the version at hand; do it once for
each release, and never again for a version that was released.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

import apsw
import msgspec

from flue_grpc.store.store import Store
from flue_grpc.store.values import Draft, EntryDraft, MemoryQuery, MessageQuery, ToolCall

KEPT = Path(__file__).parents[1] / "fixtures" / "upgrade"
VERSIONS = sorted(path.name for path in KEPT.iterdir())
QUERIES = ("timeout", "数据库", "don't", "cafe")
CALL = ToolCall("call_1", "function", "read", '{"path": "a.py"}', (("index", "0"),))
DRAFTS = (
    Draft("user", "Why does it time out? The timeout is 1 s."),
    Draft("assistant", "", provider="anthropic", tool_calls=(CALL,)),
    Draft("tool", "def main(): ...", tool_call_id="call_1", name="read"),
    Draft("assistant", "数据库连接超时 in the café; don't wait."),
    Draft("user", "With\0NUL and an image", images=("data:image/png;base64,AAAA",)),
    Draft("system", "You are helpful."),
)


def fill(path):
    """Write the database as a client would."""
    with closing(Store.open(path)) as store:
        for name, title in (
            ("s1", "a talk"),
            ("s2", "subagent: helper"),
            ("s3", ""),
            ("gone", "x"),
        ):
            store.create_session(name, title, f"create-{name}")
        store.append_messages("s1", DRAFTS, "batch-1")
        store.append_message("s2", Draft("user", "timeout again"), "single-1")
        store.append_message("gone", Draft("user", "timeout that is gone"))
        store.delete_session("gone")
        store.update_session("s3", "renamed")
        for scope in ("_global", "/srv/work"):
            store.write_memory_entry(EntryDraft(scope, f"timeout of {scope}", pinned=True))
            store.write_memory_entry(EntryDraft(scope, "数据库 lives here"))


def say(store):
    """Read everything back, as plain JSON."""
    scopes = ("_global", "/srv/work")
    sessions = _items(store.list_sessions("all"))
    said = {
        "sessions": sessions,
        "messages": {s["id"]: _items(store.list_messages(s["id"])) for s in sessions},
        "memory": {scope: _items(store.scope_memory(scope)) for scope in scopes},
        "sizes": {scope: store.scope_memory_size(scope) for scope in scopes},
        "found": {
            query: [r["message"]["id"] for r in _items(store.search_messages(_query(query)))]
            for query in QUERIES
        },
        "remembered": {
            query: [e["id"] for e in _items(store.search_memory(MemoryQuery(query, scopes)))]
            for query in QUERIES
        },
    }
    return msgspec.json.decode(msgspec.json.encode(said))


def said(version):
    """What the Store of that version said of its database."""
    return json.loads((KEPT / version / "said.json").read_text(encoding="utf-8"))


def _query(query):
    return MessageQuery(query, scope="all")


def _items(steps):
    items = [step.item for step in steps if hasattr(step, "item")]
    return msgspec.to_builtins(items)


def keep():
    directory = KEPT / f"v{version('flue-grpc')}"
    directory.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as work:
        path = Path(work) / "data" / "store.db"
        fill(path)
        with closing(Store.open(path)) as store:
            said = say(store)
        with closing(apsw.Connection(str(path))) as connection:
            connection.execute("VACUUM")
            connection.pragma("journal_mode", "delete")
        shutil.copy(path, directory / "store.db")
    text = json.dumps(said, ensure_ascii=False, indent=1, sort_keys=True)
    (directory / "said.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    keep()
