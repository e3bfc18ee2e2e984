"""Any sequence of writes, against a model in plain Python: rows, order, search and index agree."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import apsw
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from flue_grpc.errors import (
    MemoryNotFoundError,
    MessageNotFoundError,
    RequestIdReusedError,
    SessionExistsError,
    SessionNotFoundError,
)
from flue_grpc.store.checking import check
from flue_grpc.store.store import Store
from flue_grpc.store.text_index import INDEXES
from flue_grpc.store.values import (
    COMPACTION_MARKER,
    DEFAULT_SETTINGS,
    Draft,
    EntryDraft,
    MemoryChange,
    MemoryQuery,
    MessageQuery,
)

WORDS = ("alpha", "beta", "数据库", "don't", "é", "a" + "\u0301\u0323" * 50)
# FTS5 ends such a token within a code point.
LONG_WORD = "a" + "ж" * 20_000
SCOPES = ("_global", "/work")
contents = st.lists(st.sampled_from((*WORDS, LONG_WORD, "")), max_size=3).map(" ".join)
drafts = st.builds(
    Draft,
    st.sampled_from(("user", "assistant", "tool", "system")),
    contents,
    name=st.sampled_from(("", COMPACTION_MARKER)),
)


class StoreMachine(RuleBasedStateMachine):
    sessions = Bundle("sessions")
    entries = Bundle("entries")

    def __init__(self):
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.path = self.directory / "data" / "store.db"
        self.store = Store.open(self.path)
        self.titles = {}
        self.order = []
        self.messages = {}
        self.memory = {}
        self.memory_order = []
        self.requests = {}

    def teardown(self):
        self.store.close()
        assert check(self.path, DEFAULT_SETTINGS).is_sound
        shutil.rmtree(self.directory)

    def _touch(self, session_id):
        self.order = [session_id, *(name for name in self.order if name != session_id)]

    @rule(target=sessions, name=st.sampled_from("abc"), title=st.sampled_from(("t", "subagent: t")))
    def create(self, name, title):
        try:
            self.store.create_session(name, title)
        except SessionExistsError:
            assert name in self.titles
        else:
            assert name not in self.titles
            self.titles[name], self.messages[name] = title, []
            self._touch(name)
        return name

    @rule(name=sessions, title=st.sampled_from(("u", "subagent: u")))
    def retitle(self, name, title):
        try:
            self.store.update_session(name, title)
        except SessionNotFoundError:
            assert name not in self.titles
        else:
            self.titles[name] = title
            self._touch(name)

    @rule(name=sessions)
    def delete(self, name):
        try:
            self.store.delete_session(name)
        except SessionNotFoundError:
            assert name not in self.titles
        else:
            del self.titles[name], self.messages[name]
            self.order.remove(name)

    @rule(name=sessions, batch=st.lists(drafts, min_size=1, max_size=3))
    def append(self, name, batch):
        try:
            made = self.store.append_messages(name, batch)
        except SessionNotFoundError:
            assert name not in self.titles
        else:
            self.messages[name] += made
            self._touch(name)

    @rule(name=sessions, draft=drafts, request_id=st.sampled_from(("r1", "r2")))
    def append_once(self, name, draft, request_id):
        known = self.requests.get(request_id)
        try:
            made = self.store.append_message(name, draft, request_id)
        except RequestIdReusedError:
            assert known is not None
            assert known[:2] != (name, draft)
        except SessionNotFoundError:
            assert name not in self.titles
        except MessageNotFoundError:
            # Its session was deleted and made again.
            assert known[:2] == (name, draft)
            assert known[2] not in self.messages[name]
        else:
            if known is not None and known[:2] == (name, draft):
                assert made == known[2]
            else:
                self.requests[request_id] = (name, draft, made)
                self.messages[name].append(made)
                self._touch(name)

    @rule(target=entries, scope=st.sampled_from(SCOPES), content=contents, pinned=st.booleans())
    def write(self, scope, content, pinned):
        entry = self.store.write_memory_entry(EntryDraft(scope, content, pinned))
        self.memory[entry.id] = entry
        self.memory_order.insert(0, entry.id)
        return entry.id

    @rule(number=entries, content=st.none() | contents, pinned=st.booleans())
    def change(self, number, content, pinned):
        try:
            entry = self.store.update_memory_entry(number, MemoryChange(content, pinned))
        except MemoryNotFoundError:
            assert number not in self.memory
        else:
            before = self.memory[number]
            expected = before.content if content is None else content
            assert (entry.content, entry.pinned, entry.created_at) == (
                expected,
                pinned,
                before.created_at,
            )
            self.memory[number] = entry
            self.memory_order.remove(number)
            self.memory_order.insert(0, number)

    @rule(number=consumes(entries))
    def forget(self, number):
        try:
            self.store.delete_memory_entry(number)
        except MemoryNotFoundError:
            assert number not in self.memory
        else:
            del self.memory[number]
            self.memory_order.remove(number)

    @rule()
    def restart(self):
        self.store.close()
        self.store = Store.open(self.path)

    @invariant()
    def lists_agree(self):
        listed = [placed.item for placed in self.store.list_sessions("all")]
        assert [(s.id, s.title) for s in listed] == [
            (name, self.titles[name]) for name in self.order
        ]
        for name, expected in self.messages.items():
            assert [placed.item for placed in self.store.list_messages(name)] == expected
        for scope in SCOPES:
            ids = [n for n in self.memory_order if self.memory[n].scope == scope]
            ids.sort(key=lambda n: not self.memory[n].pinned)
            expected = [self.memory[n] for n in ids]
            assert [placed.item for placed in self.store.scope_memory(scope)] == expected
            size = sum(len(entry.content) for entry in expected)
            assert self.store.scope_memory_size(scope) == size

    @invariant()
    def searches_agree(self):
        for word in WORDS:
            found = {
                placed.item.message.id
                for placed in self.store.search_messages(MessageQuery(word, "user"), limit=1000)
            }
            assert found == {
                message.id
                for name, messages in self.messages.items()
                if not self.titles[name].startswith("subagent: ")
                for message in messages
                if message.role in ("user", "assistant")
                and message.name != COMPACTION_MARKER
                and word in message.content.split(" ")
            }
            remembered = self.store.search_memory(MemoryQuery(word, SCOPES), limit=1000)
            assert {placed.item.id for placed in remembered} == {
                number for number, entry in self.memory.items() if word in entry.content.split(" ")
            }

    @invariant()
    def the_indexes_are_sound(self):
        connection = apsw.Connection(str(self.path))
        for index in INDEXES:
            assert index.is_complete(connection)
            connection.execute(
                f"INSERT INTO {index.name} ({index.name}) VALUES ('integrity-check')"
            )
        connection.close()


StoreMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestStoreMachine = StoreMachine.TestCase
