"""SUBSTRING finds what neither the sweep nor the RANKED index has seen yet (behaviour B7)."""

from __future__ import annotations

import threading

import pytest

from flue_grpc.agentindex import ranked_fill, sweeper
from flue_grpc.agentindex.hit_filter import HitFilter
from flue_grpc.agentindex.index import AgentIndex
from flue_grpc.agentindex.ranked_search import RankedSearch
from flue_grpc.agentindex.settings import IndexSettings
from flue_grpc.agentindex.substring import SubstringSearch
from flue_grpc.cancel import NEVER
from flue_grpc.listing import Placed
from tests.unit.agentindex.real_home import RealHome, claude_prompt, session_id
from tests.waiting import wait_until

ONE, TWO = session_id(1), session_id(2)


def plain(word):
    return claude_prompt(f"the {word} sleeps")


def escaped(word):
    r"""Write every character of the word as ``\u00xx``."""
    code = "".join(f"\\u{ord(character):04x}" for character in word)
    return plain(word).replace(word.encode(), code.encode())


def escaped_whole(word):
    r"""Write every character of the text as ``\u00XX``, in capitals."""
    text = f"the {word} sleeps"
    code = "".join(f"\\u{ord(character):04X}" for character in text)
    return plain(word).replace(text.encode(), code.encode())


WRITINGS = (plain, escaped, escaped_whole)
WORDS = ("quokka", "numbat", "bilby")


class Held:
    """Lets a function go on only while it is not held back."""

    def __init__(self, monkeypatch, module, name):
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()
        original = getattr(module, name)

        def waiting(*arguments):
            if not self.gate.is_set():
                self.entered.set()
                self.gate.wait(60)
            return original(*arguments)

        monkeypatch.setattr(module, name, waiting)

    def hold(self):
        self.entered.clear()
        self.gate.clear()

    def release(self):
        self.gate.set()


@pytest.fixture
def home(tmp_path):
    home = RealHome(tmp_path.resolve())
    home.claude(1, claude_prompt("nothing hidden here"))
    return home


@pytest.fixture
def sweep(monkeypatch):
    return Held(monkeypatch, sweeper, "discover")


@pytest.fixture
def ranked(monkeypatch):
    return Held(monkeypatch, ranked_fill, "fill")


@pytest.fixture
def index(home, sweep, ranked):
    index = AgentIndex.open(IndexSettings(str(home.path), home.directory, sweep_interval=0.0))
    wait_until(lambda: not (index.building or index.lags))
    yield index
    sweep.release()
    ranked.release()
    index.close()


def substring(index, query):
    items = index.search(SubstringSearch(query, HitFilter()), None, NEVER).items
    return [(step.item.id, step.item.offset) for step in items if isinstance(step, Placed)]


def by_rank(index, query):
    items = index.search_ranked(RankedSearch(query, HitFilter(), 10), None, NEVER).items
    return [step.item.id for step in items if isinstance(step, Placed)]


def append(home, data):
    path = home.path / f".claude/projects/-home-dev-shop/{ONE}.jsonl"
    with path.open("ab") as file:
        place = file.tell()
        file.write(data)
    return (ONE, place)


def knows(index, name):
    def is_known():
        index.poke()
        return index.find("claude", name)

    return wait_until(is_known)


def hold_sweep(index, sweep):
    """Hold the sweep back, and wait until the one before it is over."""
    sweep.hold()

    def is_held():
        index.poke()
        return sweep.entered.is_set()

    wait_until(is_held)


def test_an_append_is_found_before_the_sweep_and_before_the_ranked_index(
    home, index, sweep, ranked
):
    for count, (word, writing) in enumerate(zip(WORDS, WRITINGS, strict=True), 2):
        hold_sweep(index, sweep)
        ranked.hold()
        place = append(home, writing(word))
        assert substring(index, word) == [place]
        assert index.find("claude", ONE).message_count == count - 1
        sweep.release()
        wait_until(lambda count=count: knows(index, ONE).message_count == count)
        assert ranked.entered.wait(60)
        assert substring(index, word.upper()) == [place]
        assert (index.lags, by_rank(index, word)) == (True, [])
        ranked.release()
        wait_until(lambda: not (index.building or index.lags))
        assert by_rank(index, word) == [ONE]
        assert substring(index, word) == [place]


@pytest.mark.parametrize("writing", WRITINGS)
def test_appends_pile_up_before_an_index_that_never_catches_up(home, index, ranked, writing):
    ranked.hold()
    places = []
    for number, word in enumerate(WORDS, 2):
        places.append(append(home, writing(word)))
        assert [substring(index, said)[0] for said in WORDS[: number - 1]] == places
        wait_until(lambda number=number: knows(index, ONE).message_count == number)
        assert [substring(index, said)[0] for said in WORDS[: number - 1]] == places
    assert index.lags
    assert [by_rank(index, said) for said in WORDS] == [[]] * 3


@pytest.mark.parametrize("writing", WRITINGS)
def test_a_transcript_that_the_ranked_index_has_not_begun_is_found(home, index, ranked, writing):
    ranked.hold()
    home.claude(2, plain("wombat"), writing("quoll"))
    knows(index, TWO)
    assert substring(index, "quoll") == [(TWO, len(plain("wombat")))]
    assert (index.lags, by_rank(index, "wombat")) == (True, [])


@pytest.mark.parametrize("writing", WRITINGS)
def test_a_last_line_without_its_newline_is_found_at_once(home, index, ranked, writing):
    ranked.hold()
    place = append(home, writing("dingo").rstrip(b"\n"))
    assert substring(index, "dingo") == [place]
    wait_until(lambda: knows(index, ONE).message_count == 2)
    assert substring(index, "dingo") == [place]
