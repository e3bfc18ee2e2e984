"""Holds the later part of each life of the server against its earlier part."""

from __future__ import annotations

from statistics import median, quantiles

MEMORY = 12.0  # MiB beyond what it held once it was warm; transcripts are appended to meanwhile
DESCRIPTORS = 24  # beyond what it held once it was warm: calls come and go
THREADS = 16  # likewise
WAL = 72.0  # MiB: JOURNAL_BYTES and what is written before a checkpoint
DRIFT = 2.0  # of the median, beyond that of a call that touches no data
DRIFT_FLOOR = 5.0  # milliseconds


def judge(life, samples):
    """Return lines that describe a life, and those of them that are faults."""
    early, late = _thirds(samples)
    lines, faults = [], []

    def tell(what, before, after, is_fault):
        line = f"life {life}: {what:<16} {before:10.2f} -> {after:10.2f}"
        lines.append(line)
        if is_fault:
            faults.append(line)

    memory = [median(s.memory for s in part) for part in (early, late)]
    tell("memory MiB", *memory, memory[1] > memory[0] + MEMORY)
    files = [median(s.descriptors for s in part) for part in (early, late)]
    tell("descriptors", *files, files[1] > files[0] + DESCRIPTORS)
    threads = [median(s.threads for s in part) for part in (early, late)]
    tell("threads", *threads, threads[1] > threads[0] + THREADS)
    for name in ("wal", "index_wal"):
        most = [max(getattr(s, name) for s in part) for part in (early, late)]
        tell(f"{name} MiB", *most, most[1] > WAL)
    pace = _pace(early, late)
    for rpc in sorted({name for s in samples for name in s.latencies}):
        before, after = (_times(part, rpc) for part in (early, late))
        if len(before) < 10 or len(after) < 10:
            continue
        middle = [median(before), median(after)]
        tell(rpc, *middle, middle[1] > max(DRIFT_FLOOR, DRIFT * pace * middle[0]))
        tell(f"{rpc} p99", _p99(before), _p99(after), is_fault=False)
    return lines, faults


def _thirds(samples):
    """Return the early and the late part of what is measured once the server is warm."""
    warm = samples[len(samples) // 4 :]
    return warm[: len(warm) // 3], warm[-(len(warm) // 3) :]


def _pace(early, late):
    """Return how much slower the machine itself has become, at least 1."""
    before, after = (_times(part, "Health") for part in (early, late))
    return max(1.0, median(after) / median(before)) if before and after else 1.0


def _times(samples, rpc):
    return [time for sample in samples for time in sample.latencies.get(rpc, ())]


def _p99(times):
    return quantiles(times, n=100)[98]
