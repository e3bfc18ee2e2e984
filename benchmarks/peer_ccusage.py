"""ccusage: token totals must agree to the token on a synthetic home, and the CPU they take.

Its ``session`` reports are compared: on real transcripts its ``daily`` ones count
copies of a request in sidechains once more.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from harness import Goal, Series, compare, interleave
from homes import home, size_of
from processes import Command, python
from servers import product

from flue.agentindex.v1 import agent_index_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harness import Figure, Scale

_TOOLS = ("claude", "codex", "pi")
_FIELDS = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheCreationTokens")


def measure(scale: Scale, peers: Path) -> Iterator[Figure]:
    """Yield one row per tool with both sums, and the CPU of reading everything once."""
    path = home(scale.work, *((600, 1000) if scale.name == "full" else (60, 100)))
    program = str(peers / "ccusage/node_modules/.bin/ccusage")
    ours = _usage(path)
    for tool in _TOOLS:
        output = _report(program, tool, path).run().output
        totals = json.loads(output)["totals"]
        theirs = tuple(totals[name] for name in _FIELDS)
        same = Series("Usage", "tokens", (float(sum(ours[tool])),))
        other = Series("ccusage", "tokens", (float(sum(theirs)),))
        if ours[tool] != theirs:
            print(f"{tool}: Usage has {ours[tool]}, ccusage {theirs}")
        bound = 1.0 if ours[tool] == theirs else -1.0
        yield compare(Goal("ccusage", f"{tool}, all four sums", "at most", bound), same, other)
    script = python("benchmarks/cold_sweep.py", str(path))
    sweep, scan = interleave(
        3,
        ("cold sweep", "s CPU", lambda: script.run().cpu),
        ("ccusage, 3 tools", "s CPU", lambda: _scan(program, path)),
    )
    yield compare(Goal("ccusage", f"{size_of(path) / 1e6:.0f} MB read once"), sweep, scan)


def _report(program: str, tool: str, path: Path) -> Command:
    arguments = [program, tool, "session", "--json", "--offline"]
    return Command(arguments, {"HOME": str(path), "CLAUDE_CONFIG_DIR": f"{path}/.claude"})


def _scan(program: str, path: Path) -> float:
    return sum(_report(program, tool, path).run().cpu for tool in _TOOLS)


def _usage(path: Path) -> dict[str, tuple[int, ...]]:
    request = agent_index_pb2.UsageRequest(group_by=[agent_index_pb2.GROUP_BY_TOOL])
    with product(path, "--no-ranked") as served:
        served.swept()
        rows = [row for response in served.index.Usage(request) for row in response.rows]
    return {
        row.keys[0]: (
            row.tokens.input,
            row.tokens.output,
            row.tokens.cache_read,
            row.tokens.cache_write,
        )
        for row in rows
    }
