from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from flue_grpc.agentindex.adapters.base import Context, MemoryLedger, Source
from flue_grpc.agentindex.adapters.registry import ADAPTERS
from flue_grpc.agentindex.located import Checkpoints
from tests.unit.agentindex import wild_transcripts as wild
from tests.unit.agentindex.notes import located, note, whole_parse
from tests.unit.agentindex.page_reading import read, stream
from tests.unit.agentindex.reading import feed_line

TEXTS = st.one_of(st.text(max_size=8), st.sampled_from(["x" * 40, "é" * 9]))
NOTES = st.builds(
    lambda texts, model: note(*texts, model=model),
    st.lists(TEXTS, max_size=4),
    st.sampled_from([None, None, "m1", "m2"]),
)
DAMAGE = st.sampled_from([b"", b" ", b"\r", b"\0\0", b"junk", b'{"notes":[', b"\xff\xfe", b"{}"])
LINES = st.lists(st.one_of(NOTES, DAMAGE), min_size=0, max_size=3).map(b"".join)
FILES = st.tuples(st.lists(LINES, max_size=12), st.one_of(st.just(b""), LINES)).map(
    lambda parts: b"".join(line + b"\n" for line in parts[0]) + parts[1]
)


def shown(messages):
    return [(m.offset, m.index, m.role, m.model, m.text) for m in messages]


def read_all(found, direction, limits_of_pages):
    """Read page by page, with these limits in turn; every page makes progress."""
    messages, offset, turn = [], None, 0
    while True:
        page = read(found, offset, direction, limit=limits_of_pages[turn % len(limits_of_pages)])
        turn += 1
        assert turn < 200
        if direction == "forward":
            messages += page.messages
            assert page.eof or page.next > (offset or 0)
            if page.eof:
                return messages
            offset = page.next
        else:
            messages[:0] = page.messages
            assert page.start < page.file_size if offset is None else page.start < offset
            if page.start == 0:
                return messages
            offset = page.start


@given(data=FILES, limits_of_pages=st.lists(st.integers(1, 7), min_size=1, max_size=3))
@settings(max_examples=100, deadline=None)
def test_pages_of_any_limits_equal_the_whole_parse(tmp_path_factory, data, limits_of_pages):
    path = tmp_path_factory.mktemp("law") / "n.jsonl"
    path.write_bytes(data)
    found = located(path)
    whole = shown(whole_parse(path))
    assert shown(read_all(found, "forward", limits_of_pages)) == whole
    if data:
        assert shown(read_all(found, "backward", limits_of_pages)) == whole
    assert shown(m for page in stream(found) for m in page.messages) == whole
    backward = stream(found, direction="backward")
    assert shown(m for page in reversed(backward) for m in page.messages) == whole


@given(data=FILES, draw=st.data())
@settings(max_examples=100, deadline=None)
def test_any_place_splits_a_file_in_what_is_before_and_behind(tmp_path_factory, data, draw):
    path = tmp_path_factory.mktemp("law") / "n.jsonl"
    path.write_bytes(data)
    found = located(path)
    whole = shown(whole_parse(path))
    page = read(found, limit=draw.draw(st.integers(1, 9)))
    for place in {page.next, page.start, draw.draw(st.integers(0, len(data) + 2))}:
        behind = shown(m for p in stream(found, place) for m in p.messages)
        before = shown(m for p in reversed(stream(found, place, "backward")) for m in p.messages)
        assert whole[: len(before)] == before
        assert whole[len(whole) - len(behind) :] == behind
        if place in {page.next, page.start}:
            assert before + behind == whole


@given(data=FILES, cut=st.floats(0, 1), limit=st.integers(1, 5))
@settings(max_examples=60, deadline=None)
def test_what_grows_is_read_once_and_in_order(tmp_path_factory, data, cut, limit):
    path = tmp_path_factory.mktemp("law") / "n.jsonl"
    path.write_bytes(data[: int(len(data) * cut)])
    found = located(path)
    messages, offset = [], 0
    for size in (int(len(data) * cut), len(data)):
        with path.open("ab") as file:
            file.write(data[path.stat().st_size : size])
        eof = False
        while not eof:
            page = read(found, offset, limit=limit)
            messages += page.messages
            offset, eof = page.next, page.eof
    assert shown(messages) == shown(whole_parse(path))


# --- the tools ---

MODEL_LINES = {
    "claude": b'{"type":"user","message":{"content":"hi"}}',
    "codex": b'{"type":"turn_context","payload":{"model":"%s"}}',
    "pi": b'{"type":"model_change","modelId":"%s"}',
}


def wild_file(tool, random):
    """Write a transcript with changes of the model and giant lines between wild ones."""
    data = b""
    for number in range(random.randint(1, 5)):
        change = MODEL_LINES[tool].replace(b"%s", b"model-%d" % number)
        data += random.choice((b"", change + b"\n", b"x" * random.choice((10, 200_000)) + b"\n"))
        data += wild.transcript(tool, random)
    return data


def parsed(adapter, data, mirror):
    """Return all messages, and the checkpoints that the index would lay."""
    context, messages, offset, laid = Context("", mirror), [], 0, [(0, Context("", mirror))]
    *whole, tail = data.split(b"\n")
    for line in whole:
        found, then = adapter.messages(line, offset, context)
        messages += found
        offset += len(line) + 1
        if then != context:
            laid.append((offset, then))
        context = then
    messages += adapter.messages(tail, offset, context)[0]
    offsets, contexts = zip(*laid, strict=True)
    return messages, Checkpoints(offsets, contexts, exact_until=offset, end=offset)


def mirror_of(adapter, data):
    state = adapter.start(Source(adapter.tool, "id"))
    for line in data.split(b"\n"):
        feed_line(adapter, state, line, MemoryLedger())
    return adapter.context(state).mirror


@given(
    seed=st.integers(0, 2**64), limits_of_pages=st.lists(st.integers(1, 7), min_size=1, max_size=3)
)
@settings(max_examples=100, deadline=None)
def test_pages_of_every_tool_equal_the_whole_parse(tmp_path_factory, seed, limits_of_pages):
    random = Random(seed)
    adapter = random.choice(ADAPTERS)
    path = tmp_path_factory.getbasetemp() / "tool.jsonl"
    data = wild_file(adapter.tool, random)
    path.write_bytes(data)
    messages, checkpoints = parsed(adapter, data, mirror_of(adapter, data))
    if random.random() < 0.3:
        # As if the index knew only the beginning.
        checkpoints = Checkpoints(checkpoints.offsets[:1], checkpoints.contexts[:1], 0, 0)
    found = located(path, checkpoints, adapter)
    whole = shown(messages)
    assert shown(read_all(found, "forward", limits_of_pages)) == whole
    assert shown(read_all(found, "backward", limits_of_pages)) == whole
    assert shown(m for page in stream(found) for m in page.messages) == whole
    backward = stream(found, direction="backward")
    assert shown(m for page in reversed(backward) for m in page.messages) == whole
    cut = random.randrange(len(data) + 1)
    before = shown(m for p in reversed(stream(found, cut, "backward")) for m in p.messages)
    behind = shown(m for p in stream(found, cut) for m in p.messages)
    assert whole[: len(before)] == before
    assert whole[len(whole) - len(behind) :] == behind
