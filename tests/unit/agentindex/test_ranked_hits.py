"""RANKED hits and what their transcripts hold by now (behaviour B7, A3.2)."""

from __future__ import annotations

import os

from tests.unit.agentindex.logs import SECOND
from tests.unit.agentindex.talks import pages, talk


class TestStale:
    """The transcripts changed, and no sweep has noticed yet."""

    def test_a_vanished_transcript_has_no_hits(self, desk):
        desk.write("a/x", talk("red x"))
        desk.write("a/y", talk("red y"))
        desk.settle()
        desk.remove("a/x")
        assert desk.texts("red") == ["red y"]

    def test_a_rewritten_one_has_none_that_are_wrong(self, desk):
        desk.write("a/x", talk("red x"), talk("more red"))
        desk.settle()
        path = desk.home.path / "logs/a/x.jsonl"
        content = path.read_bytes()
        with path.open("r+b") as file:
            file.seek(content.index(b"more red"))
            file.write(b"more tea")
        assert desk.texts("red") == ["red x"]
        desk.write("a/x", talk("another red"))
        assert desk.texts("red") == []

    def test_a_cut_one_has_what_is_left(self, desk):
        desk.write("a/x", talk("red x", t=2), talk("red y", t=1))
        desk.settle()
        path = desk.home.path / "logs/a/x.jsonl"
        path.write_bytes(path.read_bytes()[: len(talk("red x", t=2)) + 4])
        assert desk.texts("red") == ["red x"]

    def test_a_fifo_in_its_place_is_passed(self, desk):
        desk.write("a/x", talk("red"))
        desk.settle()
        desk.remove("a/x")
        os.mkfifo(desk.home.path / "logs/a/x.jsonl")
        assert desk.hits("red") == []

    def test_a_session_that_is_gone_from_the_list_is_passed(self, desk):
        desk.write("a/x", talk("red"))
        desk.settle()
        desk.remove("a/x")
        desk.sweep()
        assert desk.hits("red") == []

    def test_lag_shows_only_what_is_filled(self, desk):
        desk.write("a/x", talk("red 1"))
        desk.settle()
        desk.append("a/x", talk("red 2"))
        desk.write("a/y", talk("red 3"))
        desk.sweep()
        assert desk.texts("red") == ["red 1"]
        desk.fill()
        assert len(desk.hits("red")) == 3


class TestVerifying:
    def test_what_is_not_looked_up_is_verified_in_the_text(self, desk):
        run = "".join(chr(0x4E00 + n) for n in range(20))
        words = " ".join(f"w{n}" for n in range(70))
        desk.write(
            "a/x",
            talk(run, t=1),
            talk(run[:19], t=2),
            talk(f"{run[:16]} and {run[16:]}", t=3),
            talk(words.replace("w69", "w6"), t=4),
            talk(words, t=5),
        )
        desk.settle()
        assert [hit.ts for hit in desk.hits(run)] == [SECOND]
        assert [hit.ts for hit in desk.hits(f'"{words}"')] == [5 * SECOND]

    def test_excluded_phrases_are_verified_too(self, desk):
        run = "人" * 20
        desk.write("a/x", talk(f"red {run}", t=1), talk(f"red {run[1:]}", t=2))
        desk.settle()
        assert [hit.ts for hit in desk.hits(f"red -{run}")] == [2 * SECOND]

    def test_pages_of_verified_hits(self, desk):
        lines = [talk("人" * (15 + n % 9), t=n) for n in range(40)]
        desk.write("a/x", *lines)
        desk.settle()
        whole = desk.hits("人" * 18, limit=1000)
        assert len(whole) == sum(n % 9 >= 3 for n in range(40))
        assert pages(desk, "人" * 18, 3) == whole
