"""The tokens of Codex, counted a second time (see ``oracle``)."""

from __future__ import annotations

from tests.corpus.oracle import Record, as_tokens, count, member, payload, string, text_at


def parts(totals: object) -> tuple[int, int, tuple[int, int, int, int]] | None:
    if not isinstance(totals, dict):
        return None
    whole = count(totals.get("input_tokens")) or 0
    out = count(totals.get("output_tokens")) or 0
    read = count(totals.get("cached_input_tokens")) or 0
    write = (
        count(totals.get("cache_write_input_tokens"))
        or count(totals.get("cache_creation_input_tokens"))
        or 0
    )
    return whole, out, (max(whole - read - write, 0), out, read, write)


def tokens(records: list[Record], own: list[Record], *, fork: bool) -> tuple[int, int, int, int]:
    steps, last, whole, out, seen, turned = [], (0, 0, 0, 0), 0, 0, False, False
    for record in records:
        is_own = any(record is one for one in own)
        kind = text_at(payload(record), "type") if record.value.get("type") == "event_msg" else None
        if kind in {"task_started", "turn_started"} or record.value.get("type") == "turn_context":
            turned = turned or is_own
        info = payload(record).get("info") if kind == "token_count" else None
        now = parts(member(info, "total_token_usage"))
        if now is None:
            continue
        latest = parts(member(info, "last_token_usage"))
        baseline = (
            not seen and fork and not turned and latest and not any((*latest[:2], *latest[2]))
        )
        seen = True
        if now[0] < whole or now[1] < out:
            last = (0, 0, 0, 0)
        if is_own and not baseline:
            steps.append(tuple(a - b for a, b in zip(now[2], last, strict=True)))
        whole, out, last = now
    if seen:
        return tuple(max(total, 0) for total in as_tokens(steps))
    turns: dict = {}
    for record in own:
        if record.value.get("type") == "token_usage_record":
            now = parts(payload(record).get("turn_token_usage"))
            turn = string(payload(record).get("turn_id"))
            if now:
                turns[turn] = tuple(map(max, turns.get(turn, (0, 0, 0, 0)), now[2]))
    return as_tokens(turns.values())
