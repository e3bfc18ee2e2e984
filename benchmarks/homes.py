"""Make a synthetic home directory: ``python benchmarks/homes.py DEST --megabytes 600``.

The same arguments give the same bytes. Lines have a mean of about 2.8 KB, one in
some thousands is over 1 MB, and sessions differ in size as real ones do.
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import sys
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent))

from home_text import Text

if TYPE_CHECKING:
    from collections.abc import Iterator

_START = datetime(2026, 1, 5, 8, tzinfo=UTC)
_HUGE_LINE_EVERY = 8_000
_PROJECTS = [f"/home/dev/{name}" for name in ("shop", "pay", "web.app", "infra", "notes_2")]


@dataclass(frozen=True)
class Home:
    """What was written."""

    path: Path
    files: int
    lines: int
    bytes: int


class Session:
    """What the lines of one session share: its id, clock, directory and dice."""

    def __init__(self, rng: random.Random, text: Text, number: int) -> None:
        """Draw everything from ``rng``; later numbers start later."""
        self.rng = rng
        self.text = text
        self.id = str(uuid.UUID(int=rng.getrandbits(128), version=4))
        self.cwd = rng.choice(_PROJECTS)
        self.clock = _START + timedelta(minutes=number * 7)

    def tick(self) -> str:
        """Go on some seconds; return the time as RFC 3339."""
        self.clock += timedelta(milliseconds=self.rng.randint(200, 40_000))
        return self.clock.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def token(self) -> str:
        """Return a fresh short id."""
        return f"{self.rng.getrandbits(64):016x}"

    def output(self) -> str:
        """Return what a tool printed, once in thousands of lines a huge one."""
        if self.rng.randrange(_HUGE_LINE_EVERY // 4) == 0:
            return self.text.base64(self.rng.randint(1_100_000, 4_000_000))
        return self.text.code(self.text.skewed(1500))


def make_home(path: Path, size: int, sessions: int, seed: int = 1) -> Home:
    """Write ``sessions`` transcripts of about ``size`` bytes in all below ``path``."""
    rng = random.Random(seed)
    text = Text(rng)
    weights = [rng.lognormvariate(0, 1.0) for _ in range(sessions)]
    scale = size / sum(weights)
    writers = (_claude, _claude, _codex, _pi)
    lines = written = 0
    for number, weight in enumerate(weights):
        session = Session(rng, text, number)
        name, body = writers[number % len(writers)](session)
        target = path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        count, length = _write(target, body, weight * scale)
        lines, written = lines + count, written + length
    return Home(path, sessions, lines, written)


def home(work: Path, megabytes: int, sessions: int) -> Path:
    """Return a home of about this size below ``work``, made when it is not there yet."""
    path = work / f"home-{megabytes}-{sessions}"
    if not path.exists():
        unfinished = work / f"unfinished-{path.name}"
        shutil.rmtree(unfinished, ignore_errors=True)
        make_home(unfinished, megabytes * 1_000_000, sessions)
        unfinished.rename(path)
    return path


def transcript_of(source: Path, path: Path, megabytes: int, number: int) -> str:
    """Repeat the lines of a transcript of ``source`` in a new one below ``path``; return its id.

    All that come from one source end with the same lines.
    """
    found = max(source.rglob(".claude/**/*.jsonl"), key=lambda file: file.stat().st_size)
    body = found.read_bytes()[:1_000_000]
    body = body[: body.rfind(b"\n") + 1]
    folder = path / ".claude/projects/-home-dev-shop"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"00000000-0000-4000-8000-{number:012}.jsonl"
    with file.open("wb") as out:
        for _ in range(max(1, megabytes * 1_000_000 // len(body))):
            out.write(body)
    return file.stem


def size_of(path: Path) -> int:
    """Return the bytes of all transcripts below ``path``."""
    return sum(file.stat().st_size for file in path.rglob("*.jsonl"))


def _write(path: Path, body: Iterator[str], size: float) -> tuple[int, int]:
    lines = written = 0
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for line in body:
            lines += 1
            written += file.write(line + "\n")
            if written >= size:
                break
    return lines, path.stat().st_size


def _claude(session: Session) -> tuple[str, Iterator[str]]:
    folder = re.sub(r"[^A-Za-z0-9-]", "-", session.cwd)
    return f".claude/projects/{folder}/{session.id}.jsonl", _claude_lines(session)


def _claude_lines(session: Session) -> Iterator[str]:
    yield f'{{"type":"mode","mode":"normal","sessionId":"{session.id}"}}'
    yield from _claude_turn(session)
    yield f'{{"type":"ai-title","aiTitle":"{session.text.prose(30)}","sessionId":"{session.id}"}}'
    while True:
        yield from _claude_turn(session)


def _claude_turn(session: Session) -> Iterator[str]:
    rng, text = session.rng, session.text
    yield (
        f'{{"type":"file-history-snapshot","messageId":"{session.token()}","snapshot":'
        f'{{"trackedFileBackups":{{}},"timestamp":"{session.tick()}"}},"isSnapshotUpdate":false}}'
    )
    yield _claude_line(session, "user", f'"role":"user","content":"{text.prose(text.skewed(200))}"')
    for _ in range(rng.randint(1, 12)):
        yield from _claude_step(session)
    answer = f'[{{"type":"text","text":"{text.prose(text.skewed(900))}"}}]'
    yield _claude_answer(session, session.token(), answer, rng.randint(20, 900))


def _claude_step(session: Session) -> Iterator[str]:
    rng, text, request, call = session.rng, session.text, session.token(), session.token()
    thought = f'[{{"type":"thinking","thinking":"{text.prose(text.skewed(500))}","signature":"{text.base64(400)}"}}]'
    yield _claude_answer(session, request, thought, 3)
    use = f'[{{"type":"tool_use","id":"toolu_{call}","name":"Bash","input":{{"command":"{text.code(text.skewed(150))}"}}}}]'
    yield _claude_answer(session, request, use, rng.randint(20, 900))
    output = session.output()
    result = f'[{{"tool_use_id":"toolu_{call}","type":"tool_result","content":"{output}","is_error":false}}]'
    more = f',"toolUseResult":{{"stdout":"{output}","stderr":"","interrupted":false}}'
    yield _claude_line(session, "user", f'"role":"user","content":{result}', more)


def _claude_answer(session: Session, request: str, content: str, output: int) -> str:
    cache = 1_000 + int(request, 16) % 149_000  # the same on all lines of a request
    usage = (
        f'"usage":{{"input_tokens":4,"cache_creation_input_tokens":{cache // 9},'
        f'"cache_read_input_tokens":{cache},"output_tokens":{output},"service_tier":"standard"}}'
    )
    body = (
        f'"model":"claude-sonnet-4-5","id":"msg_{request}","type":"message","role":"assistant",'
        f'"content":{content},"stop_reason":null,"stop_sequence":null,{usage}'
    )
    return _claude_line(session, "assistant", body, f',"requestId":"req_{request}"')


def _claude_line(session: Session, kind: str, message: str, more: str = "") -> str:
    return (
        f'{{"parentUuid":"{session.token()}","isSidechain":false,"userType":"external",'
        f'"cwd":"{session.cwd}","sessionId":"{session.id}","version":"2.1.220",'
        f'"gitBranch":"main","type":"{kind}","message":{{{message}}}{more},'
        f'"uuid":"{session.token()}","timestamp":"{session.tick()}"}}'
    )


def _codex(session: Session) -> tuple[str, Iterator[str]]:
    day, stamp = f"{session.clock:%Y/%m/%d}", f"{session.clock:%Y-%m-%dT%H-%M-%S}"
    return f".codex/sessions/{day}/rollout-{stamp}-{session.id}.jsonl", _codex_lines(session)


def _codex_lines(session: Session) -> Iterator[str]:
    yield _codex_line(
        session,
        "session_meta",
        f'"id":"{session.id}","timestamp":"{session.tick()}","cwd":"{session.cwd}",'
        f'"originator":"codex-tui","cli_version":"0.145.0","source":"cli",'
        f'"base_instructions":{{"text":"{session.text.prose(9_000)}"}},"git":{{"branch":"main"}}',
    )
    total = [0, 0, 0]
    while True:
        yield from _codex_turn(session, total)


def _codex_turn(session: Session, total: list[int]) -> Iterator[str]:
    rng, text = session.rng, session.text
    model = rng.choice(("gpt-5.5", "gpt-5.5", "gpt-5.5-mini"))
    yield _codex_line(session, "turn_context", f'"cwd":"{session.cwd}","model":"{model}"')
    prompt = text.prose(text.skewed(200))
    yield _codex_message(session, "user", "input_text", prompt)
    yield _codex_line(session, "event_msg", f'"type":"user_message","message":"{prompt}"')
    for _ in range(rng.randint(1, 12)):
        yield from _codex_step(session, total)
    answer = text.prose(text.skewed(900))
    yield _codex_message(session, "assistant", "output_text", answer)
    yield _codex_line(session, "event_msg", f'"type":"agent_message","message":"{answer}"')


def _codex_step(session: Session, total: list[int]) -> Iterator[str]:
    rng, text, call = session.rng, session.text, session.token()
    yield _codex_line(
        session,
        "response_item",
        f'"type":"reasoning","summary":[{{"type":"summary_text","text":"{text.prose(120)}"}}],'
        f'"encrypted_content":"{text.base64(int(text.skewed(1800, 0.6)))}"',
    )
    arguments = f'{{\\"cmd\\":\\"{rng.choice(("rg timeout src", "ls -la", "make test"))}\\"}}'
    yield _codex_line(
        session,
        "response_item",
        f'"type":"function_call","name":"exec_command","arguments":"{arguments}","call_id":"{call}"',
    )
    yield _codex_line(
        session,
        "response_item",
        f'"type":"function_call_output","call_id":"{call}","output":"{session.output()}"',
    )
    for place, increase in enumerate((rng.randint(500, 9_000), 400, rng.randint(20, 800))):
        total[place] += increase
    yield _codex_line(
        session,
        "event_msg",
        f'"type":"token_count","info":{{"total_token_usage":{{"input_tokens":{total[0]},'
        f'"cached_input_tokens":{total[1]},"output_tokens":{total[2]}}}}}',
    )


def _codex_message(session: Session, role: str, kind: str, text: str) -> str:
    content = f'[{{"type":"{kind}","text":"{text}"}}]'
    return _codex_line(
        session, "response_item", f'"type":"message","role":"{role}","content":{content}'
    )


def _codex_line(session: Session, kind: str, payload: str) -> str:
    return f'{{"timestamp":"{session.tick()}","type":"{kind}","payload":{{{payload}}}}}'


def _pi(session: Session) -> tuple[str, Iterator[str]]:
    folder = "--" + session.cwd.strip("/").replace("/", "-") + "--"
    stamp = f"{session.clock:%Y-%m-%dT%H-%M-%S}-000Z"
    return f".pi/agent/sessions/{folder}/{stamp}_{session.id}.jsonl", _pi_lines(session)


def _pi_lines(session: Session) -> Iterator[str]:
    yield (
        f'{{"type":"session","version":3,"id":"{session.id}","timestamp":"{session.tick()}",'
        f'"cwd":"{session.cwd}"}}'
    )
    text = session.text
    while True:
        prompt = f'[{{"type":"text","text":"{text.prose(text.skewed(200))}"}}]'
        yield _pi_line(session, f'"role":"user","content":{prompt}')
        for _ in range(session.rng.randint(1, 12)):
            yield from _pi_step(session)


def _pi_step(session: Session) -> Iterator[str]:
    rng, text, call = session.rng, session.text, session.token()
    blocks = (
        f'[{{"type":"thinking","thinking":"{text.prose(text.skewed(500))}"}},'
        f'{{"type":"text","text":"{text.prose(text.skewed(150))}"}},{{"type":"toolCall",'
        f'"id":"{call}","name":"read","arguments":{{"path":"{text.code(text.skewed(150))}"}}}}]'
    )
    usage = (
        f'"usage":{{"input":{rng.randint(1, 900)},"output":{rng.randint(1, 900)},'
        f'"cacheRead":{rng.randint(1, 90_000)},"cacheWrite":0,"cost":{{"total":0.{rng.randint(1, 99):02}}}}}'
    )
    yield _pi_line(
        session,
        f'"role":"assistant","content":{blocks},"provider":"anthropic","model":"claude-opus-4-5",'
        f'{usage},"stopReason":"toolUse"',
    )
    result = f'[{{"type":"text","text":"{session.output()}"}}]'
    yield _pi_line(
        session,
        f'"role":"toolResult","toolCallId":"{call}","toolName":"read","content":{result},"isError":false',
    )


def _pi_line(session: Session, message: str) -> str:
    return (
        f'{{"type":"message","id":"{session.token()[:8]}","parentId":"{session.token()[:8]}",'
        f'"timestamp":"{session.tick()}","message":{{{message}}}}}'
    )


def main() -> None:
    """Make the home that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("dest", type=Path)
    parser.add_argument("--megabytes", type=int, default=600)
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    home = make_home(asked.dest, asked.megabytes * 1_000_000, asked.sessions, asked.seed)
    mean = home.bytes / home.lines
    print(f"{home.files} files, {home.lines} lines of {mean:.0f} bytes, {home.bytes} bytes")


if __name__ == "__main__":
    main()
