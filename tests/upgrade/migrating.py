"""A second migration on top of the released ones, and a start that is stopped in its middle.

``python -m tests.upgrade.migrating PATH`` opens the database as a start does; in the
middle of the migration it says so, and waits for its standard input to end.
"""

from __future__ import annotations

import sys
from pathlib import Path

import apsw

from flue_grpc.store import migrations, opening
from flue_grpc.store.migrations import MIGRATIONS, Migration
from flue_grpc.store.store import Store

# More than SQLite holds back: some of it is in the log before the commit.
BALLAST = """WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
    INSERT INTO ballast SELECT i, zeroblob(4000) FROM n"""
# As far reaching as one may be: a column, a table made anew, an index, much data.
STATEMENTS = (
    "ALTER TABLE memory_entries ADD COLUMN weight INTEGER NOT NULL DEFAULT 1",
    "UPDATE memory_entries SET weight = 2 WHERE pinned",
    """CREATE TABLE requests_anew (
        rpc TEXT NOT NULL,
        request_id TEXT NOT NULL,
        body BLOB NOT NULL,
        made TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        PRIMARY KEY (request_id, rpc)
    ) STRICT, WITHOUT ROWID""",
    "INSERT INTO requests_anew SELECT * FROM requests",
    "DROP TABLE requests",
    "ALTER TABLE requests_anew RENAME TO requests",
    "CREATE INDEX requests_by_age ON requests (created_at)",
    "CREATE TABLE ballast (id INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT",
    BALLAST,
    "UPDATE sessions SET title = title",
)


def second(statements=STATEMENTS):
    return Migration(2, "a second one", tuple(statements))


def use(put, *further):
    """Let this process know ``further`` migrations; ``put`` sets an attribute of a module."""
    put(migrations, "MIGRATIONS", (*MIGRATIONS, *further))
    for module in (migrations, opening):
        put(module, "CURRENT_VERSION", len(MIGRATIONS) + len(further))


def stopping(at):
    """The second migration, with a stop before its statement ``at``."""
    return second((*STATEMENTS[:at], "SELECT stop()", *STATEMENTS[at:]))


def _stop():
    sys.stdout.write("in the middle\n")
    sys.stdout.flush()
    sys.stdin.read()


def _main():
    path, at = sys.argv[1:]
    apsw.connection_hooks.append(lambda db: db.create_scalar_function("stop", _stop, 0))
    use(setattr, stopping(int(at)))
    Store.open(Path(path)).close()


if __name__ == "__main__":
    _main()
