"""A home whose transcripts grow, vanish and are rewritten, the same way for the same seed."""

from __future__ import annotations

import random

from tests.unit.agentindex.real_home import (
    RealHome,
    claude_answer,
    claude_prompt,
    codex_lines,
    line,
    pi_lines,
    session_id,
)

WORDS = ("alpha", "beta", "gamma", "timeout", "token", "library", "sqlite", "rust", "版本", "日本")


class ChangingHome:
    """``path`` is the home; ``change`` does one thing to it that tools do."""

    def __init__(self, base, seed):
        self._home = RealHome(base)
        self.path = self._home.path
        self.directory = self._home.directory
        self._dice = random.Random(seed)
        self._serial = 0
        self._files = []

    def fill(self, count):
        for _ in range(count):
            self._begin()

    def change(self):
        """Append to a transcript mostly; now and then begin, rewrite, cut or delete one."""
        choices = [*[self._append] * 8, self._begin, self._begin, self._rewrite, self._cut]
        self._dice.choice([*choices, self._delete, self._tear])()

    def _words(self):
        return " ".join(self._dice.choices(WORDS, k=self._dice.randint(1, 40)))

    def _lines(self, count):
        for _ in range(count):
            self._serial += 1
            yield claude_prompt(self._words(), self._serial % 60)
            yield claude_answer(self._serial % 90, request=f"r{self._serial}")

    def _begin(self):
        self._serial += 1
        number, dice = self._serial, self._dice
        kind = dice.choice(("claude", "claude", "subagent", "codex", "pi"))
        if kind == "codex":
            name = f"rollout-2026-07-02T08-00-00-{session_id(number)}.jsonl"
            lines = codex_lines(session_id(number))
            path = self._home.write(f".codex/sessions/2026/07/02/{name}", *lines)
        elif kind == "pi":
            name = f"2026-01-02T03-04-05-000Z_{session_id(number)}.jsonl"
            lines = pi_lines(session_id(number))
            path = self._home.write(f".pi/agent/sessions/--home-dev-pi--/{name}", *lines)
        else:
            below = f"{session_id(number // 3)}/subagents/agent-{number}.jsonl"
            lines = list(self._lines(dice.randint(1, 30)))
            path = self._home.claude(number, *lines, below=below if kind == "subagent" else "")
        self._files.append(path)

    def _pick(self):
        return self._dice.choice(self._files)

    def _append(self):
        path = self._pick()
        more = (
            list(self._lines(self._dice.randint(1, 10)))
            if ".claude" in str(path)
            else [line(type="unknown", text=self._words())]
        )
        with path.open("ab") as file:
            file.writelines(more)

    def _tear(self):
        """Leave half a line, as an agent does that is killed; the next append closes it."""
        with self._pick().open("ab") as file:
            file.write(claude_prompt(self._words())[:-5])

    def _rewrite(self):
        path = self._pick()
        fresh = path.with_suffix(".tmp")
        fresh.write_bytes(b"".join(self._lines(self._dice.randint(1, 20))))
        fresh.rename(path)

    def _cut(self):
        path = self._pick()
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size // 2)

    def keep(self, count):
        """Delete the oldest transcripts beyond so many."""
        while len(self._files) > count:
            self._files.pop(0).unlink()

    def _delete(self):
        if len(self._files) > 10:
            self._files.remove(path := self._pick())
            path.unlink()
