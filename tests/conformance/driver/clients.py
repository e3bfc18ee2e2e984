"""The clients, how each is built, and how each is run."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from servers import ROOT, SCENARIOS
from table import FAILED, Result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from servers import RunningServer

CACHE = ROOT / ".cache"
RUN_SECONDS = 300


class MissingToolchainError(Exception):
    """What a client is built with is not installed."""


@dataclass(frozen=True)
class ClientKind:
    """A client: ``prepare`` builds it and returns the command that runs scenarios."""

    prepare: Callable[[], list[str]]


def _python(caller: str, *more: str) -> list[str]:
    return [sys.executable, str(SCENARIOS / "python"), "--caller", caller, *more]


def _go() -> list[str]:
    binary = CACHE / "conformance" / "go"
    _run([_tool("go"), "build", "-o", str(binary), "."], SCENARIOS / "go")
    return [str(binary)]


def _typescript(caller: str) -> list[str]:
    node, npm, package = _tool("node"), _tool("npm"), SCENARIOS / "typescript"
    install(npm, package)
    build(npm, package)
    return [node, str(package / "dist" / "main.js"), "--caller", caller]


def install(npm: str, package: Path) -> None:
    """Install what the lock file of a package says, unless that was done already."""
    sources = [package / "package-lock.json", *(ROOT / "generated/typescript/flue").rglob("*.ts")]
    sources += (ROOT / "generated/typescript/flue").rglob("*.js")
    if _is_new(package / "node_modules/.installed", sources):
        _run([npm, "ci", "--no-audit", "--no-fund", "--loglevel=error"], package)
        _note(package / "node_modules/.installed", sources)


def build(npm: str, package: Path) -> None:
    """Compile a package, unless nothing of it has changed."""
    sources = [package / "package.json", package / "tsconfig.json"]
    sources += (ROOT / "examples/typescript/src").glob("*.ts")
    sources += (package / "src").glob("*.ts")
    if _is_new(package / "dist/.built", sources):
        _run([npm, "run", "--silent", "build"], package)
        _note(package / "dist/.built", sources)


def _is_new(stamp: Path, sources: list[Path]) -> bool:
    return not stamp.is_file() or stamp.read_text("ascii") != _digest(sources)


def _note(stamp: Path, sources: list[Path]) -> None:
    stamp.write_text(_digest(sources), "ascii")


def _digest(sources: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted(sources):
        digest.update(f"{path}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def _grpcurl() -> list[str]:
    _tool("go")
    binary = _run([str(ROOT / "scripts" / "grpcurl")], ROOT).strip()
    return _python("grpcurl", "--command", binary)


def _buf() -> list[str]:
    return _python("buf", "--command", str(Path(sys.executable).with_name("buf")))


CLIENTS = {
    "python": ClientKind(lambda: _python("grpcio")),
    "go": ClientKind(_go),
    "connect": ClientKind(lambda: _typescript("connect")),
    "grpc-js": ClientKind(lambda: _typescript("grpc-js")),
    "grpcurl": ClientKind(_grpcurl),
    "buf-curl": ClientKind(_buf),
}


def run_client(
    name: str, command: list[str], server: RunningServer, files: list[str]
) -> Iterator[Result]:
    """Run every scenario of ``files`` with one client."""
    flags = {
        "address": server.address,
        "token": server.token,
        "ca": server.ca,
        "home": str(server.home),
        "run": f"{name}-{server.transport}",
        "transport": server.transport,
    }
    # A token may begin with a dash.
    arguments = [f"--{flag}={value}" for flag, value in flags.items()]
    done = subprocess.run(
        [*command, *arguments, *files],
        capture_output=True,
        text=True,
        check=False,
        timeout=RUN_SECONDS,
    )
    for line in done.stdout.splitlines():
        result = json.loads(line)
        yield Result(
            name, server.transport, result["scenario"], result["outcome"], result.get("detail", "")
        )
    if done.returncode:
        yield Result(name, server.transport, "(runner)", FAILED, done.stderr[-2000:])


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise MissingToolchainError(f"{name} is not installed")
    return found


def _run(command: list[str], directory: Path) -> str:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout
