"""Load a real server for minutes or hours with clients in three languages.

It must stay as it was when it was warm: memory, descriptors, threads, logs, latencies.
Between its lives it is killed and stopped in turn; what was answered must be there.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import grpc

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "generated" / "python"), str(Path(__file__).parent)]

from load import RECEIVE, Load  # noqa: E402 - beside this file
from others import Others  # noqa: E402 - beside this file
from process import Process  # noqa: E402 - beside this file
from verdict import judge  # noqa: E402 - beside this file

from flue.store.v1 import store_pb2, store_pb2_grpc  # noqa: E402 - found by the path above
from tests.torture.changing_home import ChangingHome  # noqa: E402 - found by the path above

SAMPLE_SECONDS = 2.0
CHANGE_SECONDS = 0.1
TRANSCRIPTS = 300  # a home that has grown to them stays so: what grows on is no longer data
TELL_SECONDS = 300.0


def main():
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--lives", type=int, default=3)
    parser.add_argument("--keep-log", type=Path)
    arguments = parser.parse_args()
    base = Path(tempfile.mkdtemp(prefix="flue-soak"))
    try:
        faults = soak(base, arguments.minutes * 60, arguments.lives)
        if arguments.keep_log:
            shutil.copy(base / "log", arguments.keep_log)
    finally:
        shutil.rmtree(base)
    say("\n".join(["", "FAULTS:", *faults] if faults else ["", "no faults"]))
    return 1 if faults else 0


def soak(base, seconds, lives):
    """Return the faults; tell the figures on the way."""
    home = ChangingHome(base, seed=1)
    home.fill(TRANSCRIPTS // 2)
    process = Process(base)
    ending = threading.Event()
    changing = threading.Thread(target=change, args=(home, ending))
    load = Load(process.address, base / "home")
    others = Others(process.address, lambda: ids(base / "home"))
    say(f"clients: {', '.join(['python', *others.languages])}")
    if missing := others.missing:
        say(f"without {', '.join(missing)}: what builds it is not installed")
    faults = []
    process.start()
    changing.start()
    load.start()
    others.start()
    try:
        for life in range(1, lives + 1):
            samples = live(process, load, seconds / lives)
            process.end(signal.SIGTERM if life % 2 else signal.SIGKILL)
            process.start()
            lines, wrong = judge(life, samples)
            say("\n".join(lines))
            faults += wrong
    finally:
        ending.set()
        changing.join()
        load.stop()
        others.stop()
    faults += settle(process, load, others)
    process.end(signal.SIGTERM)
    faults += [line for line in process.log.splitlines() if "Traceback" in line]
    return faults


def live(process, load, seconds):
    samples, start, told = [], time.monotonic(), 0.0
    load.take_times()
    while (at := time.monotonic() - start) < seconds:
        time.sleep(SAMPLE_SECONDS)
        samples.append(sample := process.sample(at, load.take_times()))
        if at - told >= TELL_SECONDS:
            told = at
            say(f"{at / 60:.0f} min: {sample.memory:.0f} MiB, {sample.threads} threads")
    return samples


def change(home, ending):
    while not ending.wait(CHANGE_SECONDS):
        home.change()
        home.keep(TRANSCRIPTS)


def ids(home):
    return [path.stem for path in home.glob(".claude/projects/*/*.jsonl")] or ["none"]


def settle(process, load, others):
    """Count what was answered and what is there."""
    with grpc.insecure_channel(process.address, RECEIVE) as channel:
        grpc.channel_ready_future(channel).result(60)
        store = store_pb2_grpc.StoreStub(channel)
        faults = [f"unexpected: {text}" for text in load.surprises[:20]]
        faults += [f"client: {text}" for text in others.complaints[:20]]
        faults += [f"client: {name}" for name in others.ended if name.endswith("stuck")]
        for session, count in sorted(load.acknowledged.items()):
            listed = store.ListMessages(store_pb2.ListMessagesRequest(session_id=session))
            found = [m.content.split(" lorem")[0] for each in listed for m in each.messages]
            # The last one of a writer may have been written and not answered.
            if not count <= len(found) <= count + 2 or len(set(found)) != len(found):
                faults.append(f"{session}: {count} answered, {len(found)} there")
    say("calls:", dict(load.calls))
    say("codes:", dict(load.codes))
    say("other clients:", dict(others.ended))
    say("appends answered:", sum(load.acknowledged.values()))
    return faults


def say(*words):
    """Tell it at once: a long run is looked at while it runs."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
