"""The sweep worker: same result, survives its death, never outlives us (techniques §3)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import apsw
import pytest

from flue_grpc.agentindex import index_rows, worker_process, worker_sweep
from flue_grpc.agentindex.adapters.registry import ADAPTERS
from flue_grpc.agentindex.catalog import Catalog
from flue_grpc.agentindex.discovery import discover, real_roots
from flue_grpc.agentindex.index_file import open_index_file
from flue_grpc.agentindex.settings import IndexSettings
from flue_grpc.agentindex.sweeper import Sweeper
from tests.unit.agentindex.real_home import RealHome, claude_answer, claude_prompt, session_id
from tests.waiting import wait_until

PATIENCE = 30.0


class Bench:
    """A home, its index, and a sweeper that sends any work outside."""

    def __init__(self, base, worker_bytes=0):
        self.home = RealHome(base)
        self.roots = real_roots(ADAPTERS, str(self.home.path), {})
        self.file = open_index_file(self.home.directory, str(self.home.path), ())
        self.catalog = Catalog()
        settings = IndexSettings(
            str(self.home.path), self.home.directory, sweep_interval=0, worker_bytes=worker_bytes
        )
        self.sweeper = Sweeper(settings, ADAPTERS, self.file, self.catalog, lambda: None)

    def sweep(self):
        if self.sweeper._thread.is_alive():
            self.sweeper.poke()
        else:
            self.sweeper.start()
        wait_until(lambda: not self.sweeper.building)
        return self

    def summaries(self):
        return [session.summary for session in self.catalog.view().sessions]

    def close(self):
        self.sweeper.stop()
        self.file.close()


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(worker_sweep, "WORKER_RETRY_SECONDS", (0.0, 0.0, 0.0))


@pytest.fixture
def bench(tmp_path):
    bench = Bench(tmp_path.resolve())
    yield bench
    bench.close()


@pytest.fixture
def started(monkeypatch):
    """The workers that were started."""
    started = []
    plain = worker_process.WorkerProcess.__init__

    def watched(self, order):
        plain(self, order)
        started.append((self, order))

    monkeypatch.setattr(worker_process.WorkerProcess, "__init__", watched)
    return started


@pytest.fixture
def replaced(tmp_path, monkeypatch):
    """Let another program be started in the place of Python."""

    def replaced(code):
        program = tmp_path / "worker.py"
        program.write_text(textwrap.dedent(code))
        launcher = tmp_path / "launcher"
        launcher.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{program}"\n')
        launcher.chmod(0o700)
        monkeypatch.setattr(sys, "executable", str(launcher))

    return replaced


def test_the_result_is_that_of_a_sweep_in_the_server(bench, tmp_path, started):
    (tmp_path / "other").mkdir()
    other = Bench(tmp_path / "other", worker_bytes=2**60)
    for one in (bench, other):
        one.home.fill(3)
        one.home.claude(9, claude_prompt(), claude_answer()[:-1])
        one.home.claude(0, claude_answer(7), below=f"{session_id(0)}/subagents/agent-a.jsonl")
        one.sweep()
    other.close()
    assert len(started) == 1
    outside, inside = (
        [(s.tool, s.id, s.title, s.tokens, s.subagent_tokens, s.cost_usd) for s in one.summaries()]
        for one in (bench, other)
    )
    assert len(outside) == 11
    assert outside == inside
    assert bench.sweeper.progress.files == bench.sweeper.progress.of_files == 11
    assert discover(bench.roots, bench.catalog.known).dirty == []


def test_it_takes_up_appends_and_drops_what_vanished(bench, started):
    bench.home.fill(2)
    path = bench.home.claude(0, claude_prompt(), claude_answer(5))
    bench.sweep()
    with path.open("ab") as file:
        file.write(claude_answer(9) + claude_answer(1, request="req_2"))
    bench.home.codex(1000).unlink()
    bench.sweep()
    assert len(started) == 2
    assert bench.sweeper.progress.of_files == 1
    assert bench.catalog.get(("claude", session_id(0))).summary.tokens.output == 10
    assert bench.catalog.get(("codex", session_id(1000))) is None
    first, second = (order.first_tid for _, order in started)
    assert (first, second) == (1, 7)


class TestHowMuch:
    """Only what is still to be read counts."""

    @pytest.fixture
    def path(self, bench):
        path = bench.home.claude(0, *[claude_prompt("x" * 1000)] * 100)
        bench.sweep()
        bench.sweeper._settings = replace(bench.sweeper._settings, worker_bytes=50_000)
        return path

    def append(self, path, count):
        with path.open("ab") as file:
            file.write(claude_prompt("x" * 1000) * count)

    def test_an_append_to_a_large_file_is_little(self, bench, path, started):
        self.append(path, 40)
        bench.sweep()
        assert started == []
        assert bench.summaries()[0].message_count == 140

    def test_a_large_append_is_much(self, bench, path, started):
        self.append(path, 60)
        bench.sweep()
        assert len(started) == 1
        assert bench.summaries()[0].message_count == 160

    def test_a_large_file_that_was_rewritten_is_much(self, bench, path, started):
        path.write_bytes(claude_prompt("y" * 1000) * 99)
        bench.sweep()
        assert len(started) == 1
        assert bench.summaries()[0].message_count == 99

    def test_much_that_a_file_event_tells_of_goes_outside_too(self, bench, path, started):
        self.append(path, 60)
        new = bench.home.claude(7, claude_prompt())
        bench.sweeper.refresh([str(path), str(new)])
        wait_until(lambda: len(bench.summaries()) == 2)
        wait_until(lambda: bench.catalog.entry(str(path)).record.summary.message_count == 160)
        assert len(started) == 1


def test_what_vanished_alone_needs_no_worker(bench, started):
    path = bench.home.codex(1000)
    bench.sweep()
    path.unlink()
    bench.sweep()
    assert (len(started), bench.summaries()) == (1, [])


def test_killed_in_the_middle_the_next_one_does_only_the_rest(
    bench, replaced, started, monkeypatch, tmp_path
):
    replaced(
        f"""
        import pathlib, time
        from flue_grpc.agentindex import sweep_worker
        plain = sweep_worker.write_batch
        written = pathlib.Path({str(tmp_path / "written")!r})
        def halting(db, batch):
            if written.exists():
                db.execute("begin immediate")
                written.unlink()
                time.sleep(600)
            plain(db, batch)
            if batch.files > 1:
                written.touch()
        sweep_worker.write_batch = halting
        sweep_worker.main()
        """
    )
    bench.home.fill(50)
    plain = worker_sweep.WorkerSweep._show

    def killing(self, report):
        plain(self, report)
        if report.stored and len(started) == 1:
            wait_until(lambda: not (tmp_path / "written").exists())
            os.kill(started[0][0].pid, signal.SIGKILL)

    monkeypatch.setattr(worker_sweep.WorkerSweep, "_show", killing)
    bench.sweep()
    assert len(bench.summaries()) == 150
    assert [order.is_careful for _, order in started] == [False, True]
    assert bench.sweeper.progress.of_files == 150 - 64


@pytest.mark.parametrize("program", ["/bin/false", "/nonexistent/python"])
def test_without_a_worker_the_server_sweeps_itself(bench, monkeypatch, caplog, program):
    monkeypatch.setattr(sys, "executable", program)
    bench.home.fill(2)
    bench.sweep()
    assert len(bench.summaries()) == 6
    assert "sweeping slowly in the server" in caplog.text


def test_a_file_that_kills_the_worker_is_left_out_until_it_changes(bench, replaced, caplog):
    replaced(
        """
        import os, signal
        from flue_grpc.agentindex import intake, sweep_worker

        plain = intake.Intake.take

        def dying(self, found, previous):
            with open(found.path, "rb") as file:
                if b"DEADLY" in file.read():
                    os.kill(os.getpid(), signal.SIGKILL)
            return plain(self, found, previous)

        intake.Intake.take = dying
        sweep_worker.main()
        """
    )
    bench.home.fill(2)
    deadly = bench.home.claude(7, claude_prompt("DEADLY"))
    bench.sweep()
    assert len(bench.summaries()) == 6
    assert "is left out until it changes" in caplog.text
    caplog.clear()
    bench.home.claude(8, claude_prompt())
    bench.sweep()
    assert (len(bench.summaries()), caplog.text) == (7, "")
    deadly.write_bytes(claude_prompt("harmless"))
    bench.sweep()
    assert len(bench.summaries()) == 8


def test_one_that_talks_nonsense_is_not_believed(bench, replaced, caplog, monkeypatch):
    monkeypatch.setattr(worker_process, "WORKER_STOP_SECONDS", 0.05)
    replaced("print('nonsense', flush=True)\nimport time\ntime.sleep(60)\n")
    bench.home.fill(1)
    bench.sweep()
    assert len(bench.summaries()) == 3
    assert "cannot be used" in caplog.text


def test_a_report_that_cannot_be_looked_up_is_made_good(bench, started, monkeypatch):
    monkeypatch.setattr(worker_process, "WORKER_STOP_SECONDS", 0.05)
    bench.home.fill(1)
    damaged = iter([True])

    def failing(db, tids):
        if next(damaged, False):
            raise apsw.CorruptError("malformed")
        return plain(db, tids)

    plain = index_rows.load_some
    monkeypatch.setattr(index_rows, "load_some", failing)
    bench.sweep()
    assert len(started) == 2
    assert len(bench.summaries()) == 3


def test_what_was_committed_but_never_reported_is_shown(bench, replaced, tmp_path):
    replaced(
        f"""
        import pathlib
        from flue_grpc.agentindex import sweep_worker
        plain = sweep_worker._report
        first = pathlib.Path({str(tmp_path / "first")!r})
        def dying(report):
            if (report.stored or report.dropped) and not first.exists():
                first.touch()
                raise SystemExit(1)
            plain(report)
        sweep_worker._report = dying
        sweep_worker.main()
        """
    )
    bench.home.fill(2)
    bench.sweep()
    assert len(bench.summaries()) == 6
    (tmp_path / "first").unlink()
    bench.home.codex(1000).unlink()
    bench.home.pi(9)
    bench.sweep()
    assert len(bench.summaries()) == 6
    assert bench.catalog.get(("codex", session_id(1000))) is None


def test_one_that_stops_in_the_middle_of_a_report_is_not_believed(bench, replaced):
    replaced("""print('{"is_swept":true}', end='', flush=True)""")
    bench.home.fill(1)
    bench.sweep()
    assert len(bench.summaries()) == 3


def test_closing_ends_it_at_once_whatever_it_does(bench, replaced, started, tmp_path):
    replaced(
        f"""
        import pathlib, time
        from flue_grpc.agentindex import sweep_worker
        def busy(self):
            pathlib.Path({str(tmp_path / "busy")!r}).touch()
            time.sleep(600)
        sweep_worker._Sweep.run = busy
        sweep_worker.main()
        """
    )
    bench.home.fill(1)
    bench.sweeper.start()
    wait_until((tmp_path / "busy").exists)
    bench.sweeper.stop()
    assert started[0][0]._process.returncode == 0
    assert len(started) == 1


def test_one_that_does_not_listen_is_killed(bench, replaced, started, monkeypatch):
    monkeypatch.setattr(worker_process, "WORKER_STOP_SECONDS", 0.05)
    replaced("import time\nprint(flush=True, end='')\ntime.sleep(600)\n")
    bench.home.fill(1)
    bench.sweeper.start()
    wait_until(lambda: started)
    bench.sweeper.stop()
    assert started[0][0]._process.returncode == -signal.SIGKILL


def test_it_gives_way_to_the_server_and_ignores_its_terminal(bench, replaced, started, tmp_path):
    replaced(
        f"""
        import os
        from flue_grpc.agentindex import sweep_worker
        plain = sweep_worker._Sweep.run
        def telling(self):
            with open({str(tmp_path / "told")!r}, "w") as file:
                file.write(f"{{os.nice(0)}} {{os.getpgrp()}} {{os.getpid()}}")
            plain(self)
        sweep_worker._Sweep.run = telling
        sweep_worker.main()
        """
    )
    bench.home.fill(1)
    bench.sweep()
    nice, group, process = map(int, (tmp_path / "told").read_text().split())
    assert nice == min(os.nice(0) + 10, 19)
    assert group == process == started[0][0].pid


def test_it_does_not_outlive_the_server(bench, tmp_path):
    bench.home.fill(1)
    code = f"""
        import signal, sys, time
        from flue_grpc.agentindex.worker_messages import WorkerOrder
        from flue_grpc.agentindex.worker_process import WorkerProcess
        worker = WorkerProcess(WorkerOrder({os.fsencode(bench.file.path)!r}, (), 1, avoid=(b"",)))
        import os
        os.kill(worker.pid, signal.SIGSTOP)
        print(worker.pid, flush=True)
        time.sleep(600)
    """
    server = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True
    )
    worker = int(server.stdout.readline())
    server.kill()
    server.wait()
    server.stdout.close()
    os.kill(worker, signal.SIGCONT)
    wait_until(lambda: is_gone(worker))


def is_gone(process):
    try:
        status = Path(f"/proc/{process}/stat").read_text()
        return status.rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True
