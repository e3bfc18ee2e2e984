"""``flue-grpc memory``: what agents chose to remember."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from flue_grpc.commands.connection import add_connection, reporting, store
from flue_grpc.commands.filters import directory
from flue_grpc.commands.numbers import entry_id, limit
from flue_grpc.commands.output import (
    CANNOT,
    EXIT_CODES,
    OK,
    Style,
    add_output,
    complain,
    make_console,
    nothing,
    print_fields,
    print_json,
    style_of,
)

if TYPE_CHECKING:
    from argparse import _SubParsersAction
    from collections.abc import Callable, Iterable

    from flue.store.v1 import store_pb2 as pb

    Subparsers = _SubParsersAction[argparse.ArgumentParser]

_GLOBAL: Final = "_global"
_LIMIT: Final = 50
_EXAMPLES: Final = """\
examples:
  flue-grpc memory list                    of this directory and of every project
  flue-grpc memory search "code style"
  flue-grpc memory add "Tabs, not spaces" --scope _global --pin
  flue-grpc memory edit 12 - < note.txt    take the text from standard input
  flue-grpc memory delete 12
"""


def add_parsers(subparsers: Subparsers) -> None:
    """Add the command with its verbs."""
    parser = subparsers.add_parser(
        "memory",
        help="list, search and change memory entries",
        description="Scopes are working directories, or _global for what holds everywhere.",
        epilog=_EXAMPLES + EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    _add_reading(verbs)
    _add_writing(verbs)


def _add_reading(verbs: Subparsers) -> None:
    verb = _verb(verbs, "list", "list entries, pinned first, then the newest", _list)
    _add_scopes(verb)
    verb.add_argument("--limit", type=limit, default=_LIMIT, metavar="N", help="0 for all")
    add_output(verb)
    verb = _verb(verbs, "search", "search entries by words, best first", _search)
    verb.add_argument("query", help="words, all required")
    _add_scopes(verb)
    verb.add_argument("--limit", type=limit, default=_LIMIT, metavar="N", help="0 for all")
    add_output(verb)
    verb = _verb(verbs, "size", "count the characters of a scope", _size)
    verb.add_argument("scope", nargs="?", type=_scope, help="default: this directory")


def _add_writing(verbs: Subparsers) -> None:
    verb = _verb(verbs, "add", "store an entry and print its id", _add)
    verb.add_argument("content", help="the text, or - for standard input")
    verb.add_argument("--scope", type=_scope, help="default: this directory")
    verb.add_argument("--pin", action="store_true", help="first in every list")
    verb = _verb(verbs, "edit", "replace an entry's text", _edit)
    verb.add_argument("id", type=entry_id)
    verb.add_argument("content", help="the text, or - for standard input")
    for name, is_pinned in (("pin", True), ("unpin", False)):
        verb = _verb(verbs, name, f"{name} an entry", _pin)
        verb.add_argument("id", type=entry_id)
        verb.set_defaults(is_pinned=is_pinned)
    verb = _verb(verbs, "delete", "delete an entry", _delete)
    verb.add_argument("id", type=entry_id)


def _verb(
    verbs: Subparsers, name: str, text: str, run: Callable[[argparse.Namespace], int]
) -> argparse.ArgumentParser:
    verb = verbs.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    add_connection(verb)
    verb.set_defaults(run=reporting(run))
    return verb


def _add_scopes(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--scope",
        action="append",
        type=_scope,
        metavar="SCOPE",
        help="default: this directory and _global",
    )


def _scopes(arguments: argparse.Namespace) -> list[str]:
    return arguments.scope or [_here(), _GLOBAL]


def _scope(text: str) -> str:
    """Read a directory as ``sessions --cwd`` does; other words are scopes as they are."""
    return directory(text) if text.startswith(".") or "/" in text else text


def _here() -> str:
    return str(Path.cwd())


def _list(arguments: argparse.Namespace) -> int:
    with store(arguments) as client:
        entries = client.store.recent_memory(_scopes(arguments), limit=arguments.limit or None)
        return _print(style_of(arguments), entries)


def _search(arguments: argparse.Namespace) -> int:
    with store(arguments) as client:
        entries = client.store.search_memory(
            _scopes(arguments), arguments.query, limit=arguments.limit or None
        )
        return _print(style_of(arguments), entries)


def _size(arguments: argparse.Namespace) -> int:
    with store(arguments) as client:
        print(client.store.scope_memory_size(arguments.scope or _here()))
    return OK


def _add(arguments: argparse.Namespace) -> int:
    content = _content(arguments)
    if not content.strip():
        return _refuse_empty()
    with store(arguments) as client:
        scope = arguments.scope or _here()
        entry = client.store.write_memory_entry(scope, content, pinned=arguments.pin)
    print(entry.id)
    return OK


def _edit(arguments: argparse.Namespace) -> int:
    content = _content(arguments)
    if not content.strip():
        return _refuse_empty()
    with store(arguments) as client:
        client.store.update_memory_entry(arguments.id, content=content)
    return OK


def _pin(arguments: argparse.Namespace) -> int:
    with store(arguments) as client:
        client.store.update_memory_entry(arguments.id, pinned=arguments.is_pinned)
    return OK


def _delete(arguments: argparse.Namespace) -> int:
    with store(arguments) as client:
        client.store.delete_memory_entry(arguments.id)
    return OK


def _refuse_empty() -> int:
    complain("there is no text to remember; `flue-grpc memory delete ID` removes an entry")
    return CANNOT


def _content(arguments: argparse.Namespace) -> str:
    content: str = arguments.content
    return sys.stdin.read().rstrip("\n") if content == "-" else content


def _print(style: Style, entries: Iterable[pb.MemoryEntry]) -> int:
    from flue_grpc.render.memory import render_entry

    console = make_console() if style is Style.RICH else None
    count = 0
    for entry in entries:
        count += 1
        if console is not None:
            console.print(render_entry(entry))
        elif style is Style.JSON:
            print_json(entry)
        else:
            pin = "pinned" if entry.pinned else ""
            print_fields(entry.id, pin, entry.updated_at.ToJsonString(), entry.scope, entry.content)
    return OK if count else nothing("no entry matches")
