"""A transcript as one HTML file: nothing in it runs, nothing is fetched.

Every text is escaped, the content security policy forbids everything but this
page's own style by its hash, and the bars are plain SVG.
"""

from __future__ import annotations

import base64
import hashlib
import html
from typing import TYPE_CHECKING, Final

from flue.agentindex.v1 import agent_index_pb2 as pb
from flue_grpc.render.amounts import money, short_number, size, total_tokens
from flue_grpc.render.html_style import STYLE
from flue_grpc.render.plain import kind_name, role_name
from flue_grpc.render.safe import for_terminal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_BUCKETS: Final = ("input", "output", "cache_read", "cache_write")
_BAR_UNITS: Final = 1000
_SUMMARY_CODE_POINTS: Final = 120
_BEGINNING_CODE_POINTS: Final = 4 * _SUMMARY_CODE_POINTS  # with room for white space


def to_html(summary: pb.Summary, messages: Iterable[pb.Message]) -> Iterator[str]:
    """Yield the page piece by piece, so that a long transcript is never held."""
    yield _head(summary)
    for message in messages:
        yield _message(message)
    yield "</main>\n</body>\n</html>\n"


def escape(text: str) -> str:
    """Escape text for HTML, in content and in quoted attributes.

    Control characters, which HTML forbids, and overrides of direction are made visible.
    """
    return html.escape(for_terminal(text))


def policy() -> str:
    """Write the content security policy: this page's style, nothing else."""
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def _head(summary: pb.Summary) -> str:
    title = escape(summary.title or summary.id)
    return (
        "<!DOCTYPE html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy())}">\n'
        '<meta name="referrer" content="no-referrer">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<header>\n<h1>{title}</h1>\n{_facts(summary)}{_tokens(summary)}</header>\n"
    )


def _facts(summary: pb.Summary) -> str:
    facts = [
        ("tool", summary.tool),
        ("session", summary.id),
        ("directory", summary.cwd),
        ("branch", summary.git_branch),
        ("models", ", ".join(summary.models)),
        ("started", summary.started_at.ToJsonString() if summary.HasField("started_at") else ""),
        ("ended", summary.ended_at.ToJsonString() if summary.HasField("ended_at") else ""),
        ("messages", f"{summary.message_count} (tool calls: {summary.tool_call_count})"),
        ("cost", money(summary)),
    ]
    rows = (f"<dt>{name}</dt><dd>{escape(value)}</dd>\n" for name, value in facts if value)
    return f"<dl>\n{''.join(rows)}</dl>\n"


def _tokens(summary: pb.Summary) -> str:
    rows = [("own", summary.tokens)]
    if total_tokens(summary.subagent_tokens):
        rows.append(("subagent", summary.subagent_tokens))
    most = max(total_tokens(tokens) for _, tokens in rows)
    if not most:
        return ""
    return "".join(_bars(name, tokens, most) for name, tokens in rows)


def _bars(name: str, tokens: pb.TokenUsage, most: int) -> str:
    parts, start = [], 0
    for bucket in _BUCKETS:
        width = round(getattr(tokens, bucket) / most * _BAR_UNITS)
        parts.append(f'<rect class="{bucket}" x="{start}" y="0" width="{width}" height="20"/>')
        start += width
    legend = " ".join(
        f'<span class="{bucket}">{bucket.replace("_", " ")} '
        f"{short_number(getattr(tokens, bucket))}</span>"
        for bucket in _BUCKETS
    )
    return (
        f"<figure><figcaption>{name} tokens: {short_number(total_tokens(tokens))} {legend}"
        f'</figcaption><svg viewBox="0 0 {_BAR_UNITS} 20" preserveAspectRatio="none" '
        f'role="img" aria-label="{name} tokens">{"".join(parts)}</svg></figure>\n'
    )


def _message(message: pb.Message) -> str:
    role = role_name(message.role)
    kind = kind_name(message.kind)
    error = " error" if message.is_error else ""
    anchor = f"m{message.offset}-{message.index}"
    opening = f'<section id="{anchor}" class="{role} {kind}{error}">\n'
    text = f'<pre dir="auto">{escape(message.text)}</pre>\n{_note(message)}'
    if message.kind == pb.KIND_TEXT and message.role != pb.ROLE_SYSTEM:
        return f"{opening}<h2>{_label(message, role)}</h2>\n{text}</section>\n"
    label = f"<summary>{_folded(message, role, kind)}</summary>\n"
    return f"{opening}<details>\n{label}{text}</details>\n</section>\n"


def _label(message: pb.Message, role: str) -> str:
    parts = [f"<b>{role}</b>"]
    if message.sidechain:
        parts.append("subagent")
    if message.HasField("ts"):
        written = message.ts.ToJsonString()
        parts.append(f'<time datetime="{written}">{written}</time>')
    if message.model:
        parts.append(escape(message.model))
    return " ".join(parts)


def _folded(message: pb.Message, role: str, kind: str) -> str:
    name = escape(message.tool_name) if message.tool_name else kind.replace("_", " ")
    if kind == "text":
        name = role
    beginning = " ".join(message.text[:_BEGINNING_CODE_POINTS].split())
    is_cut = len(beginning) > _SUMMARY_CODE_POINTS or len(message.text) > _BEGINNING_CODE_POINTS
    short = escape(beginning[:_SUMMARY_CODE_POINTS]) + ("…" if is_cut else "")
    return f"<b>{name}</b> <code>{short}</code> <i>{size(message.text_size)}</i>"


def _note(message: pb.Message) -> str:
    if not message.truncated:
        return ""
    return f'<p class="note">cut: {size(message.text_size)} in all</p>\n'
