"""Versions, and limits of the system that the service may run into."""

from __future__ import annotations

import os
import platform
import resource
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Final

import apsw

from flue_grpc.agentindex.file_events import why_polling
from flue_grpc.doctor.findings import note, ok, problem
from flue_grpc.limits import DOCTOR_OPEN_FILES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flue_grpc.doctor.findings import Finding

_PACKAGES: Final = ("grpcio", "protobuf", "msgspec", "watchfiles")
_EXTRAS: Final = {
    "channelz": "grpcio-channelz",
    "fast": "hyperscan",
    "otel": "opentelemetry-sdk",
    "prometheus": "prometheus-client",
}
_INOTIFY: Final = Path("/proc/sys/fs/inotify")


def versions() -> Iterator[Finding]:
    """Name what runs: this product, Python, and what it leans on."""
    yield ok("version", f"flue-grpc {version('flue-grpc')}, Python {platform.python_version()}")
    packages = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    yield ok("packages", f"{packages}, SQLite {apsw.sqlite_lib_version()}")
    there = [extra for extra, package in _EXTRAS.items() if _is_installed(package)]
    missing = [extra for extra in _EXTRAS if extra not in there]
    text = f"installed: {', '.join(there) or 'none'}"
    yield ok("extras", f"{text}; not installed: {', '.join(missing)}" if missing else text)


def open_files() -> Iterator[Finding]:
    """Compare the limit of open files with what full budgets need."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < DOCTOR_OPEN_FILES:
        yield problem(
            "open files",
            f"the limit is {soft}, full budgets may need {DOCTOR_OPEN_FILES}",
            f"raise it with `ulimit -n {DOCTOR_OPEN_FILES}` (the hard limit is {hard})",
        )
    else:
        yield ok("open files", f"the limit is {soft}")


def file_watches(roots: Iterable[str]) -> Iterator[Finding]:
    """Compare the kernel's limits with the directories below the roots, and try to watch them."""
    roots = tuple(roots)
    limit = _kernel_number("max_user_watches")
    if limit is None:
        yield note("file watches", "this kernel does not tell its limits")
        return
    needed = sum(_directories(root) for root in roots)
    instances = _kernel_number("max_user_instances")
    text = f"{needed} directories to watch, the kernel allows {limit} for all your programs"
    if needed > limit:
        yield problem(
            "file watches",
            f"{text}: changes are noticed by polling",
            f"run `sysctl fs.inotify.max_user_watches={2 * needed}` as root",
        )
    elif refusal := why_polling(roots):
        yield problem(
            "file watches",
            f"{text} in {instances} instances, but: {refusal}: changes are noticed by polling",
            "close programs that watch files, or raise the limits in /proc/sys/fs/inotify",
        )
    else:
        yield ok("file watches", f"{text} in {instances} instances")


def _directories(root: str) -> int:
    return sum(1 for _ in os.walk(root))


def _kernel_number(name: str) -> int | None:
    try:
        return int((_INOTIFY / name).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _is_installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True
