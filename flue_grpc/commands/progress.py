"""Signs of life for work that takes a while, on standard error and only for a person."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from flue_grpc.commands.output import is_watched

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console


@contextmanager
def spinner(what: str, console: Console | None = None) -> Iterator[Callable[[str], None]]:
    """Spin while the block runs; call what is yielded with how far it has come.

    ``console`` is the one that prints meanwhile, so that lines stay whole.
    """
    if not is_watched():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.status import Status

    with Status(what, console=console or Console(stderr=True)) as status:
        yield lambda text: status.update(f"{what}: {text}" if text else what)


@contextmanager
def bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar while the block runs; call what is yielded with what is done and of how much."""
    if not is_watched():
        yield lambda _done, _total: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(what, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total or None)
