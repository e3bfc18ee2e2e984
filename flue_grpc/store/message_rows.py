"""Messages as rows of their table, whole, without images, or cut for a search window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from flue_grpc import limits
from flue_grpc.store.images import decode_images, encode_images
from flue_grpc.store.tool_calls import decode_tool_calls, encode_tool_calls
from flue_grpc.store.values import Images, Message, ToolCall
from flue_grpc.store.window_calls import first_calls, is_cut
from flue_grpc.text.clean import cut_bytes

if TYPE_CHECKING:
    from flue_grpc.store.connections import Row
    from flue_grpc.store.values import Draft

_CUT: Final = limits.WINDOW_TEXT_BYTES + 1  # one byte more shows that there was more
_CALLS_CUT: Final = limits.WINDOW_CALLS_BYTES + 1
_IMAGE: Final = 2  # bytes of an image without its data
_BEFORE_IMAGES: Final = (
    "id, session_id, role, content, provider, tool_calls, tool_call_id, name, created_at"
)
COLUMNS: Final[dict[Images, str]] = {
    "whole": f"{_BEFORE_IMAGES}, images",
    "omitted": f"{_BEFORE_IMAGES}, image_count",
}
# SQLite cuts bytes, since its text functions stop at a NUL.
WINDOW_COLUMNS: Final = f"""id, session_id, role, substr(CAST(content AS BLOB), 1, {_CUT}),
    substr(CAST(provider AS BLOB), 1, {_CUT}), substr(CAST(tool_calls AS BLOB), 1, {_CALLS_CUT}),
    substr(CAST(tool_call_id AS BLOB), 1, {_CUT}), substr(CAST(name AS BLOB), 1, {_CUT}),
    created_at, image_count"""
INSERT: Final = """INSERT INTO messages (session_id, created_at, role, provider, tool_call_id,
    name, image_count, content, tool_calls, images) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""


def insert_row(session_id: str, created_at: int, draft: Draft) -> Row:
    """Return what INSERT binds for a message of the session."""
    return (
        session_id,
        created_at,
        draft.role,
        draft.provider,
        draft.tool_call_id,
        draft.name,
        len(draft.images),
        draft.content,
        encode_tool_calls(draft.tool_calls),
        encode_images(draft.images),
    )


def message(row: Row) -> Message:
    """Make a message of a row of either kind of COLUMNS."""
    number, session_id, role, content, provider, calls, call_id, name, created_at, images = row
    return Message(
        number,
        session_id,
        role,
        content,
        provider,
        decode_tool_calls(calls) if calls else (),
        call_id,
        name,
        _images(images) if images else (),
        created_at,
    )


def _images(column: str | int) -> tuple[str, ...]:
    return decode_images(column) if isinstance(column, str) else ("",) * column


def row_size(row: Row) -> int:
    """About the bytes of a row of COLUMNS."""
    images = row[9]
    texts = len(row[3]) + len(row[4]) + len(row[5]) + len(row[6]) + len(row[7])
    return texts + (len(images) if type(images) is str else _IMAGE * images)


def window_message(row: Row) -> Message:
    """Make a message of a row of WINDOW_COLUMNS: no image data, no extra, texts cut.

    Each text has at most 16 KiB; all of them, the tool calls and the images take at most
    limits.WINDOW_MESSAGE_BYTES.
    """
    number, session_id, role, content, provider, calls, call_id, name, created_at, images = row
    texts = _Cutter()
    return Message(
        number,
        session_id,
        role,
        content=texts.cut_raw(content),
        provider=texts.cut_raw(provider),
        tool_call_id=texts.cut_raw(call_id),
        name=texts.cut_raw(name),
        images=texts.cut_images(images),
        tool_calls=texts.cut_calls(calls or b""),
        created_at=created_at,
        truncated=texts.has_cut,
    )


class _Cutter:
    """Cuts the texts of one window message and remembers whether it had to."""

    def __init__(self) -> None:
        self.has_cut = False
        self._left = limits.WINDOW_MESSAGE_BYTES

    def cut_raw(self, data: bytes | None) -> str:
        # SQLite makes NULL of a part of an empty BLOB.
        data = data or b""
        size = min(limits.WINDOW_TEXT_BYTES, self._left)
        self.has_cut = self.has_cut or len(data) > size
        self._left -= min(len(data), size)
        return data[:size].decode("utf-8", "ignore")

    def cut_images(self, count: int) -> tuple[str, ...]:
        kept = min(count, self._left // _IMAGE)
        self.has_cut = self.has_cut or kept < count
        self._left -= kept * _IMAGE
        return ("",) * kept

    def cut_calls(self, column: bytes) -> tuple[ToolCall, ...]:
        self.has_cut = self.has_cut or is_cut(column)
        kept: list[ToolCall] = []
        for call in first_calls(column):
            if self._left < limits.WINDOW_CALL_BYTES:
                self.has_cut = True
                break
            self._left -= limits.WINDOW_CALL_BYTES
            names = self._cut(call.id), self._cut(call.type), self._cut(call.name)
            kept.append(ToolCall(*names, self._cut(call.arguments)))
        return tuple(kept)

    def _cut(self, text: str) -> str:
        return self.cut_raw(cut_bytes(text, _CUT).encode())


def stored(number: int, session_id: str, created_at: int, draft: Draft) -> Message:
    """Return the message as its row would be read back."""
    return Message(number, session_id, created_at=created_at, **msgspec.structs.asdict(draft))
