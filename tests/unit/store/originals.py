"""Databases as the Go original writes them."""

from __future__ import annotations

TABLES = """
CREATE TABLE sessions (id TEXT PRIMARY KEY, title TEXT NOT NULL DEFAULT '',
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL);
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL REFERENCES sessions(id), role TEXT NOT NULL, content TEXT NOT NULL,
    provider TEXT NOT NULL DEFAULT '', tool_calls TEXT NOT NULL DEFAULT '',
    tool_call_id TEXT NOT NULL DEFAULT '', name TEXT NOT NULL DEFAULT '',
    images TEXT NOT NULL DEFAULT '', created_at INTEGER NOT NULL);
CREATE INDEX messages_of_session ON messages(session_id);
CREATE TABLE memory_entries (id INTEGER PRIMARY KEY AUTOINCREMENT, scope TEXT NOT NULL,
    content TEXT NOT NULL, pinned INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL);
"""
SEARCH = """
CREATE VIRTUAL TABLE old_search USING fts5(content, content='messages', content_rowid='id');
CREATE TRIGGER old_insert AFTER INSERT ON messages BEGIN
    INSERT INTO old_search (rowid, content) VALUES (new.id, new.content); END;
CREATE TRIGGER old_memory AFTER UPDATE ON memory_entries BEGIN SELECT raise(ABORT, 'old'); END;
"""
CALLS = (
    '[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\\"a\\": \\"\\u003c\\"}"},'
    '"extra_content":{"google":{"thought_signature":"AbC=="}}}]'
)


def fill(original):
    original(
        "INSERT INTO sessions VALUES ('s1', 'a talk', 100, 200), ('s2', 'subagent: x', 50, 60)"
    )
    original(
        "INSERT INTO messages (session_id, role, content, tool_calls, tool_call_id, name, images, "
        "provider, created_at) VALUES ('s1', 'user', 'hello 数据', '', '', '', '[\"data:a\",\"b\"]', '', 100), "
        "('s1', 'assistant', '', ?, '', '', '', 'openai', 150), "
        "('s1', 'tool', 'output', '', 'c1', 'f', '', '', 200), ('s2', 'user', 'hello', '', '', '', '', '', 60)",
        (CALLS,),
    )
    original("INSERT INTO memory_entries VALUES (3, '_global', 'a foo-bar note', 1, 10, 20)")
