"""Watching the list of sessions against a real server (contract rules 1 to 5 and 9)."""

from __future__ import annotations

import json
import shutil

import grpc

from flue.agentindex.v1 import agent_index_pb2 as ai
from flue_grpc import limits
from flue_grpc.readings import readings_of
from tests.wire import homes
from tests.wire.live import events, follow_transcript, texts, watching


def test_a_watch_begins_with_the_present_and_tells_of_every_change(flue, wait_until):
    for number in (1, 2):
        homes.write_session(flue.home, number)
    flue.swept()
    one, two, three = map(homes.session_id, (1, 2, 3))
    with watching(flue) as reader:
        wait_until(lambda: reader.caught_up)
        assert events(reader) == [("ADDED", two), ("ADDED", one)]
        homes.write_session(flue.home, 3)
        wait_until(lambda: ("ADDED", three) in events(reader))
        with homes.transcript_path(flue.home, 1).open("a") as file:
            file.write(homes.user_line(1, "more", 2))
        wait_until(lambda: ("UPDATED", one) in events(reader))
        homes.transcript_path(flue.home, 2).unlink()
        wait_until(lambda: ("REMOVED", two) in events(reader))
    removed = [e for r in reader.responses for e in r.events if e.type == ai.EVENT_TYPE_REMOVED]
    assert removed == [
        ai.SessionEvent(type=ai.EVENT_TYPE_REMOVED, summary=ai.Summary(tool="claude", id=two))
    ]
    updated = [e for r in reader.responses for e in r.events if e.summary.id == one]
    assert updated[-1].summary.message_count == 3


def test_a_watch_hears_of_directories_that_appear_while_it_runs(flue, wait_until):
    with watching(flue) as reader:
        wait_until(lambda: reader.caught_up)
        homes.write_session(flue.home, 1)  # not even the root was there
        wait_until(lambda: events(reader) == [("ADDED", homes.session_id(1))])
        nested = flue.home / ".codex/sessions/2026/07/02"
        nested.mkdir(parents=True)
        meta = {"type": "session_meta", "payload": {"id": "x", "cwd": "/srv/work"}}
        prompt = {"role": "user", "content": [{"type": "input_text", "text": "hi"}]}
        item = {"type": "response_item", "payload": {"type": "message", **prompt}}
        name = f"rollout-2026-07-02T08-00-00-{homes.session_id(9)}.jsonl"
        (nested / name).write_text("".join(json.dumps(line) + "\n" for line in (meta, item)))
        wait_until(lambda: ("ADDED", homes.session_id(9)) in events(reader))


def test_a_watch_shows_only_what_was_asked_for(flue, wait_until):
    homes.write_session(flue.home, 1)
    homes.write_session(flue.home, 2, [homes.user_line(2, "elsewhere", cwd="/srv/other")])
    flue.swept()
    with (
        watching(flue, cwd="/srv/other") as here,
        watching(flue, tools=["codex"]) as codex,
        watching(flue, tools=["nobody"]) as nobody,
    ):
        wait_until(lambda: all(each.caught_up for each in (here, codex, nobody)))
    assert events(here) == [("ADDED", homes.session_id(2))]
    assert events(codex) == events(nobody) == []


def test_a_watch_shows_subagents_only_when_asked(flue, wait_until):
    homes.write_session(flue.home, 1)
    below = homes.transcript_path(flue.home, 1).with_suffix("") / "subagents"
    below.mkdir(parents=True)
    (below / "agent-a.jsonl").write_text(homes.user_line(1, "do it"))
    flue.swept()
    child = f"{homes.session_id(1)}.agent-a"
    with watching(flue) as plain, watching(flue, include_subagents=True) as all_of_them:
        wait_until(lambda: plain.caught_up and ("ADDED", child) in events(all_of_them))
    assert events(plain)[:1] == [("ADDED", homes.session_id(1))]
    assert all(name != child for _, name in events(plain))


def test_changes_of_one_session_are_merged_for_a_slow_watcher(flue, transcript, wait_until):
    index = flue.server.services.index
    from flue_grpc.agentindex.snapshots import SnapshotFilter
    from flue_grpc.cancel import NEVER

    watch = index.watch(SnapshotFilter())
    assert len(list(watch.backlog(NEVER))) == 1
    for number in range(5):
        transcript(homes.user_line(1, f"n{number}", number + 2))
        wait_until(
            lambda count=3 + number: (
                index.find("claude", homes.session_id(1)).message_count == count
            )
        )
    merged = list(watch.changes(NEVER))
    assert [type(event).__name__ for event in merged] == ["Updated"]
    assert merged[0].summary.message_count == 7
    watch.close()


def polling(flue):
    """Return the values of the metric that tells of it."""
    readings = readings_of(flue.server.services)
    return [reading.value for reading in readings if reading.name == "flue.index.polling"]


def test_with_file_events_no_metric_tells_of_polling(flue, wait_until):
    wait_until(lambda: flue.server.services.index.file_events == "events")
    assert polling(flue) == [0]


def test_without_file_events_looking_at_the_files_takes_their_place(
    make_flue, wait_until, monkeypatch
):
    import watchfiles

    def exhausted(*_paths, **_options):
        raise OSError(28, "No space left on device")
        yield

    monkeypatch.setattr(watchfiles, "watch", exhausted)
    monkeypatch.setattr(limits, "POLL_SECONDS", 0.005)
    flue = make_flue()
    homes.write_session(flue.home, 1)
    flue.start().swept()
    wait_until(lambda: flue.server.services.index.file_events == "polling")
    assert polling(flue) == [1]
    with follow_transcript(flue) as reader, watching(flue) as watch:
        wait_until(lambda: reader.caught_up and watch.caught_up)
        with homes.transcript_path(flue.home, 1).open("a") as file:
            file.write(homes.user_line(1, "more", 2))
        wait_until(lambda: len(texts(reader)) == 3)
        wait_until(lambda: ("UPDATED", homes.session_id(1)) in events(watch))
        shutil.rmtree(homes.transcript_path(flue.home, 1).parent)
        assert reader.end() == (grpc.StatusCode.NOT_FOUND, "TRANSCRIPT_NOT_FOUND")
