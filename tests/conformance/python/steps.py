"""The verbs of a scenario (README.md of this directory)."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from expect import MismatchError, look_up, match, rising

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

CALL_SECONDS = 60.0
CANCEL = object()  # sent into the responses of a stream
EVENTUALLY_SECONDS = 30.0
EVENTUALLY_PAUSE = 0.05
VARIABLE = re.compile(r"\$\{(\w+)\}")


class CallFailedError(Exception):
    """An RPC failed: ``failure`` has code, reason, metadata, domain and message."""

    def __init__(self, failure: dict[str, Any]) -> None:
        super().__init__(str(failure))
        self.failure = failure


class Caller(Protocol):
    """Makes RPCs whose messages are protobuf JSON."""

    def call(self, method: str, request: Any, token: str, seconds: float) -> Any: ...

    def stream(
        self, method: str, request: Any, token: str, seconds: float
    ) -> Generator[Any, Any, None]: ...


@dataclass
class Outcome:
    """What a call or a stream came to."""

    response: Any = None
    items: list[Any] = field(default_factory=list)
    last: Any = None
    calls: int = 0
    error: CallFailedError | None = None


class Runner:
    """Does the steps of one scenario."""

    def __init__(self, caller: Caller, token: str, home: Path, run: str) -> None:
        self._caller = caller
        self._token = token
        self._home = home
        self._variables: dict[str, Any] = {"run": run}

    def steps(self, steps: list[dict[str, Any]]) -> None:
        """Do steps in order; raises MismatchError at the first that is not as expected."""
        for number, step in enumerate(steps, 1):
            try:
                self._step(step)
            except MismatchError as error:
                raise MismatchError(f"step {number}: {error}") from error

    def _step(self, step: dict[str, Any]) -> None:
        if "repeat" in step:
            for number in range(1, step["repeat"] + 1):
                self._variables["i"] = str(number)
                self.steps(step["steps"])
        elif "append" in step:
            self._write(step["append"], step["text"], "ab")
        elif "write" in step:
            self._write(step["write"], step["text"], "wb")
        elif "remove" in step:
            (self._home / self._substitute(step["remove"])).unlink()
        else:
            self._call_until_expected(step)

    def _write(self, name: str, text: str, mode: str) -> None:
        path = self._home / self._substitute(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open(mode) as file:
            file.write(str(self._substitute(text)).encode())

    def _call_until_expected(self, step: dict[str, Any]) -> None:
        end = time.monotonic() + EVENTUALLY_SECONDS
        while True:
            try:
                self._call_once(step)
            except MismatchError:
                if not step.get("eventually") or time.monotonic() > end:
                    raise
                time.sleep(EVENTUALLY_PAUSE)
            else:
                return

    def _call_once(self, step: dict[str, Any]) -> None:
        outcome = Outcome()
        try:
            if "call" in step:
                request = self._substitute(step.get("request", {}))
                outcome.response = self._caller.call(step["call"], request, *self._how(step))
            else:
                self._stream(step, outcome)
        except CallFailedError as error:
            outcome.error = error
        try:
            self._check(step, outcome)
        except MismatchError as error:
            raise MismatchError(f"{step.get('call') or step['stream']}: {error}") from error
        self._save(step, outcome)

    def _how(self, step: dict[str, Any]) -> tuple[str, float]:
        seconds = step["deadline_ms"] / 1000 if "deadline_ms" in step else CALL_SECONDS
        return step.get("token", self._token), seconds

    def _stream(self, step: dict[str, Any], outcome: Outcome) -> None:
        request = dict(self._substitute(step.get("request", {})))
        if "limit_each" in step:
            request["limit"] = step["limit_each"]
        break_after = step.get("break_after", 0)
        while True:
            outcome.calls += 1
            stopped = self._one_stream(step, request, break_after, outcome)
            more = look_up(outcome.last, "nextPageToken")
            if not (stopped and break_after) and not ("limit_each" in step and more):
                return
            break_after = 0
            if step.get("resume_by") == "offset":
                request["offset"] = look_up(outcome.last, "page.next") or "0"
                request["revision"] = look_up(outcome.last, "page.revision")
            else:
                request["pageToken"] = more or ""

    def _one_stream(
        self, step: dict[str, Any], request: Any, break_after: int, outcome: Outcome
    ) -> bool:
        wanted = max(step.get("until", 0), break_after)
        caught_up = False
        stream = self._caller.stream(step["stream"], request, *self._how(step))
        try:
            for response in stream:
                outcome.last = response
                found = look_up(response, step["items"])
                outcome.items += found if isinstance(found, list) else [found] if found else []
                if look_up(response, "caughtUp") is True and not caught_up:
                    caught_up = True
                    self.steps(step.get("when_caught_up", []))
                if wanted and len(outcome.items) >= wanted:
                    return True
                if 0 < step.get("cancel_after", 0) <= len(outcome.items):
                    stream.send(CANCEL)
        finally:
            stream.close()
        return False

    def _check(self, step: dict[str, Any], outcome: Outcome) -> None:
        expected = self._substitute(step.get("expect", {}))
        if "error" in expected:
            if outcome.error is None:
                raise MismatchError("succeeded where it has to fail")
            match("error", expected["error"], outcome.error.failure)
            return
        if outcome.error is not None:
            raise MismatchError(str(outcome.error))
        values = {
            "response": outcome.response,
            "items": outcome.items,
            "last": outcome.last,
            "count": len(outcome.items),
            "calls": outcome.calls,
            "first": outcome.items[0] if outcome.items else None,
            "last_item": outcome.items[-1] if outcome.items else None,
            "text": "".join(outcome.items) if step.get("join") else None,
        }
        for name, pattern in expected.items():
            if name == "each":
                for number, item in enumerate(outcome.items):
                    match(f"items.{number}", pattern, item)
            elif name == "rising":
                rising(outcome.items, pattern)
            else:
                match(name, pattern, values[name])

    def _save(self, step: dict[str, Any], outcome: Outcome) -> None:
        whole = outcome.response
        if "stream" in step:
            whole = {"items": outcome.items, "last": outcome.last}
        for name, path in step.get("save", {}).items():
            value = look_up(whole, path)
            if value is None:
                raise MismatchError(f"there is no {path} in {whole}")
            self._variables[name] = value

    def _substitute(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._substitute(member) for key, member in value.items()}
        if isinstance(value, list):
            return [self._substitute(member) for member in value]
        if not isinstance(value, str):
            return value
        whole = VARIABLE.fullmatch(value)
        if whole:
            return self._variables[whole[1]]
        return VARIABLE.sub(lambda found: str(self._variables[found[1]]), value)
