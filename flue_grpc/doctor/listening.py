"""The addresses of the service: who may connect, and whether a server answers."""

from __future__ import annotations

import stat
import time
from typing import TYPE_CHECKING, Final

from flue_grpc.doctor.findings import note, ok, problem
from flue_grpc.errors import ConfigError
from flue_grpc.limits import DOCTOR_CERTIFICATE_DAYS, DOCTOR_HEALTH_SECONDS
from flue_grpc.listeners import UnixAddress, parse_address
from flue_grpc.private_files import holder_of
from flue_grpc.probe import probing, status_of
from flue_grpc.rpc.runtime import AGENT_INDEX_NAME, STORE_NAME
from flue_grpc.security.addresses import is_loopback
from flue_grpc.security.certificate_facts import read_facts
from flue_grpc.security.certificates import load
from flue_grpc.security.tokens import read_token_file
from flue_grpc.server import tcp_settings
from flue_grpc.store import files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from flue_grpc.doctor.findings import Finding
    from flue_grpc.listeners import Address, TcpAddress
    from flue_grpc.security.certificates import TlsFiles
    from flue_grpc.settings import Settings

_DAY: Final = 86_400
_START: Final = "start one with `flue-grpc serve`; end a process that has its files in use first"
_ELSEWHERE: Final = "commands find the server by its data directory; tell other clients {}"


def addresses(settings: Settings) -> Iterator[Finding]:
    """Look at every address of the settings, at what guards it, and where a server is instead."""
    holder = holder_of(files.lock_path(settings.data_dir / files.DATABASE_NAME))
    elsewhere = [text for text in holder.addresses if text not in settings.listen] if holder else []
    if holder and elsewhere:
        where = " and ".join(elsewhere)
        yield ok("server", f"{holder.process} has this data directory and listens on {where}")
    advice = _ELSEWHERE.format(elsewhere[0]) if elsewhere else _START
    for text in settings.listen:
        try:
            address = parse_address(text)
        except ConfigError as error:
            yield problem("address", str(error), "correct `listen`")
            continue
        if isinstance(address, UnixAddress):
            yield _socket(address, settings, advice)
        else:
            yield from _tcp(address, settings)


def _socket(address: UnixAddress, settings: Settings, advice: str) -> Finding:
    path = address.path
    try:
        status = path.lstat()
    except FileNotFoundError:
        return note("socket", f"{path}: no server listens", advice)
    except OSError as error:
        return problem("socket", f"{path}: {error.strerror}", "choose another place with --listen")
    if not stat.S_ISSOCK(status.st_mode):
        return problem("socket", f"{path} is not a socket", "remove it, or choose another place")
    mode = stat.S_IMODE(status.st_mode)
    answers = _health(address, settings)
    if answers is None:
        return note("socket", f"{path}: left behind, no server answers", advice)
    return _served("socket", f"{path} (mode {mode:04o})", answers)


def _tcp(address: TcpAddress, settings: Settings) -> Iterator[Finding]:
    subject = "tcp"
    try:
        guards = tcp_settings(settings)
        certified = guards.tls_files()
    except ConfigError as error:
        yield problem(subject, str(error), "correct the settings")
        return
    if certified is not None:
        yield _certificate(certified)
    elif guards.insecure_plaintext:
        yield note(subject, f"{address}: open to all who reach it", "keep a sidecar before it")
        return
    elif not is_loopback(address.host):
        yield problem(
            subject, f"{address}: plaintext beyond this machine", "set tls_cert and tls_key"
        )
        return
    if certified is not None and certified.client_ca is not None:
        yield ok(subject, f"{address}: client certificates are demanded")
        return
    yield ok(subject, f"{address}: tokens are demanded")
    yield from _tokens(guards.token_file)


def _tokens(path: Path) -> Iterator[Finding]:
    if not path.exists():
        yield note("tokens", f"{path} is not there yet", "`flue-grpc serve` makes it")
        return
    try:
        found = read_token_file(path)
    except ConfigError as error:
        yield problem("tokens", str(error), f"let {path} be yours alone: `chmod 600 {path}`")
        return
    names = ", ".join(f"{t.principal.name} ({t.principal.role})" for t in found.tokens)
    if found.bad_lines:
        lines = ", ".join(map(str, found.bad_lines))
        yield problem("tokens", f"{path}: line {lines} is not ROLE TOKEN NAME", "correct it")
    if found.tokens:
        yield ok("tokens", f"{path}: {names}")
    else:
        yield problem("tokens", f"{path} has no token", "run `flue-grpc token new NAME`")


def _certificate(certified: TlsFiles) -> Finding:
    try:
        load(certified)
        facts = read_facts(certified.certificate, certified.key)
    except ConfigError as error:
        return problem("certificate", str(error), "put a valid certificate there")
    days = int((facts.not_after - time.time()) // _DAY)
    text = f"{certified.certificate}: for {', '.join(facts.names) or 'no name'}, {days} days left"
    if not facts.names:
        return problem("certificate", text, "clients want a subject alternative name")
    if days < DOCTOR_CERTIFICATE_DAYS:
        return note("certificate", text, "renew it; the files are read again without a restart")
    return ok("certificate", text)


def _served(subject: str, where: str, answers: dict[str, str]) -> Finding:
    text = ", ".join(f"{name.rpartition('.')[2]} {status}" for name, status in answers.items())
    if set(answers.values()) == {"SERVING"}:
        return ok(subject, f"{where}: {text}")
    return problem(subject, f"{where}: {text}", "look at the server's log")


def _health(address: Address, settings: Settings) -> dict[str, str] | None:
    """Ask a server for both services; None when nobody answers."""
    answers: dict[str, str] = {}
    with probing(address, settings) as channel:
        for name in (STORE_NAME, AGENT_INDEX_NAME):
            status = status_of(channel, name, DOCTOR_HEALTH_SECONDS)
            if status is None:
                return None
            answers[name] = status
    return answers
