"""Tables on terminals of every width: ids and keys are whole, and no line is longer."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from flue.agentindex.v1 import agent_index_pb2 as pb
from flue_grpc.render.tables import session_table
from flue_grpc.render.usage import usage_table

MODEL = "claude-opus-4-5-20251101"
TOKENS = pb.TokenUsage(input=1200, output=34_000, cache_read=5_600_000, cache_write=70_000)


def drawn(table, width):
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(table)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def sessions(width, title="Raise the gateway timeout"):
    summary = pb.Summary(
        tool="claude", id="5f0c2d9e-0000", title=title, message_count=1234, tokens=TOKENS,
        cost_usd=1234.5,
    )  # fmt: skip
    summary.ended_at.FromJsonString("2026-03-01T09:00:09Z")
    return drawn(session_table([summary], width, is_first=True), width)


@pytest.mark.parametrize(
    ("width", "heads"),
    [
        (100, "ended tool id messages tokens cost title"),
        (82, "ended tool id messages tokens cost title"),
        (72, "ended tool id messages tokens title"),
        (60, "ended tool id tokens title"),
        (52, "ended tool id title"),
        (40, "tool id title"),
        (30, "id title"),
        (20, "id title"),
    ],
)
def test_a_narrow_list_of_sessions_leaves_columns_out_and_no_id(width, heads):
    head, row = sessions(width)
    assert head.split() == heads.split()
    assert "5f0c2d9e" in row
    assert max(len(head), len(row)) <= width


def test_a_short_title_leaves_room_for_the_rest():
    assert sessions(72, "Hi")[0].split() == [
        "ended",
        "tool",
        "id",
        "messages",
        "tokens",
        "cost",
        "title",
    ]


def usage(width, keys=("day", "model")):
    names = {"day": "2026-03-01", "model": MODEL}
    rows = [
        pb.UsageRow(
            keys=[names[key] for key in keys],
            tokens=TOKENS,
            cost_usd=1234.5,
            session_count=12,
            message_count=3456,
        )
    ]
    return drawn(usage_table(keys, rows, width), width)


@pytest.mark.parametrize(
    ("width", "heads"),
    [
        (130, "day model tokens total in out cached written cost sessions msgs"),
        (100, "day model total in out cached written cost sessions msgs"),
        (90, "day model total in out cached written cost msgs"),
        (80, "day model total in out cached written"),
        (60, "day model total in out"),
        (44, "day model total"),
    ],
)
def test_narrow_usage_leaves_out_the_bar_then_figures_and_no_key(width, heads):
    head, row = usage(width)
    assert head.split() == heads.split()
    assert row.split()[:2] == ["2026-03-01", MODEL]
    assert max(len(head), len(row)) <= width


def test_a_terminal_narrower_than_its_keys_still_shows_all_of_them():
    lines = usage(20, keys=("model",))
    assert "".join(line[:13].strip() for line in lines[1:]) == MODEL
