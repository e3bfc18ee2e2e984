"""What the commands on the Store's database do: backup, restore, export, import, check.

backup, export and check read beside a running server; restore, import and
check --repair become the owner, so they are refused while a server runs.
"""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

import msgspec

from flue_grpc import limits
from flue_grpc.commands.output import complain
from flue_grpc.commands.output_file import output_file
from flue_grpc.errors import UnusableDatabaseError
from flue_grpc.render.amounts import counted
from flue_grpc.store import backup, checking, files
from flue_grpc.store.connections import open_beside
from flue_grpc.store.copying import silent
from flue_grpc.store.database import owned
from flue_grpc.store.exporting import WRITERS, Writer, export_session, export_sessions
from flue_grpc.store.health import Health
from flue_grpc.store.importing import Importer
from flue_grpc.store.opening import inspect
from flue_grpc.store.readers import Readers
from flue_grpc.store.values import StoreSettings
from flue_grpc.text.clean import cut_bytes

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterator, Mapping

    from flue_grpc.settings import Settings
    from flue_grpc.store.copying import Progress

_OK: Final = 0
_FAULT: Final = 1


def run(args: Namespace, settings: Settings) -> int:
    """Run the command ``args.operation``; 0 when all is well, 1 when something was refused.

    Raises FlueError when it could not be done at all.
    """
    return _OPERATIONS[args.operation](args, settings)


def _backup(args: Namespace, settings: Settings) -> int:
    with _progress("backing up") as progress:
        backup.backup(_path(settings), args.destination.absolute(), _store(settings), progress)
    return _OK


def _restore(args: Namespace, settings: Settings) -> int:
    path, source = files.real_path(_path(settings)), args.source.absolute()
    if not source.exists():
        raise UnusableDatabaseError(f"{source} does not exist")
    with files.claim(path), _progress("restoring") as progress:
        kept = backup.restore(source, path, _store(settings), progress)
    if kept is not None:
        _say(f"the replaced database is kept as {kept}")
    return _OK


def _export(args: Namespace, settings: Settings) -> int:
    path, store = _path(settings), _store(settings)
    _refuse_without_store(path, store)
    readers = Readers(lambda: open_beside(path, store), Health())
    try:
        with output_file(args.output) as file:
            parts = _exported(readers, WRITERS[args.format], args.session)
            size = sum(file.write(part) for part in parts)
    finally:
        readers.close()
    if not size:
        _say("the Store has no session; the transcript of an agent is exported by --transcript ID")
    return _OK


def _exported(readers: Readers, writer: Writer, session_id: str) -> Iterator[bytes]:
    if session_id:
        return export_session(readers, writer, session_id)
    return export_sessions(
        readers,
        writer,
        lambda name: _say(f"session {name} was deleted while it was read, so it was left out"),
    )


def _import(args: Namespace, settings: Settings) -> int:
    with _opened(args.file) as source, owned(_path(settings), _store(settings)) as connection:
        imported = Importer(connection).run(_lines(source))
    for refusal in imported.refusals:
        name = f"session {refusal.session_id}" if refusal.session_id else "not imported"
        _say(cut_bytes(f"line {refusal.line}: {name}: {refusal.reason}", limits.REFUSAL_BYTES))
    _say(
        f"imported {counted(imported.sessions, 'session')} "
        f"with {counted(imported.messages, 'message')}, "
        f"refused {len(imported.refusals)}"
    )
    return _FAULT if imported.refusals else _OK


def _check(args: Namespace, settings: Settings) -> int:
    path, store = _path(settings), _store(settings)
    _refuse_without_store(path, store)
    if args.repair:
        with owned(path, store) as connection:
            checking.repair(connection)
    checked = checking.check(path, store)
    sys.stdout.writelines(f"{line}\n" for line in _report(checked))
    return _OK if checked.is_sound else _FAULT


def _report(checked: checking.Checked) -> Iterator[str]:
    yield f"schema version {checked.version}"
    yield from (f"{count.name}: {counted(count.rows, 'row')}" for count in checked.counts)
    yield from (f"damaged: {problem}" for problem in checked.problems)
    if checked.problems:
        yield "restore a backup, or export what can be read"
    for fault in checked.index_faults:
        wrong = "is damaged" if fault.rows is None else f"is wrong for {counted(fault.rows, 'row')}"
        yield f"search index {fault.name} {wrong}; check --repair fills it anew"
    yield "ok" if checked.is_sound else "not ok"


def _refuse_without_store(path: Path, store: StoreSettings) -> None:
    if inspect(path, store).kind != "store":
        raise UnusableDatabaseError(f"{path} holds nothing yet; start the server once")


def _path(settings: Settings) -> Path:
    return settings.data_dir / files.DATABASE_NAME


def _store(settings: Settings) -> StoreSettings:
    return StoreSettings("normal" if settings.durability == "normal" else "full")


class _Source(msgspec.Struct, frozen=True):
    """A file to import; ``size`` in bytes, 0 when it is not known."""

    file: BinaryIO
    size: int = 0


@contextmanager
def _opened(name: str) -> Iterator[_Source]:
    if name == "-":
        yield _Source(sys.stdin.buffer)
        return
    with ExitStack() as stack:
        try:
            file = stack.enter_context(Path(name).open("rb"))
        except OSError as error:
            raise UnusableDatabaseError(f"{name} cannot be read: {error.strerror}") from error
        yield _Source(file, os.fstat(file.fileno()).st_size)


def _lines(source: _Source) -> Iterator[bytes]:
    """Yield lines; of one over limits.IMPORT_LINE_BYTES the pieces, which are no lines."""
    with _progress("importing") as progress:
        done = 0
        while line := source.file.readline(limits.IMPORT_LINE_BYTES):
            done += len(line)
            if source.size:
                progress(done, source.size)
            yield line


@contextmanager
def _progress(what: str) -> Iterator[Progress]:
    """Show a bar on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield silent
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _say(text: str) -> None:
    complain(text)


_OPERATIONS: Final[Mapping[str, Callable[[Namespace, Settings], int]]] = {
    "backup": _backup,
    "restore": _restore,
    "export": _export,
    "import": _import,
    "check": _check,
}
