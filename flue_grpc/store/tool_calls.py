"""Tool calls as the JSON text of their column, in the shape of the Go original (behaviour A1, A2).

``[{"id": …, "type": …, "function": {"name": …, "arguments": …}, …}]`` with each
further member as it came. What cannot stand there (a text that is no JSON, or has
a line break, or is nested too deeply; a name that is taken) stands as strings in
a member of its own, ``flue:extra``: so the column is one line.
"""

from __future__ import annotations

from typing import Final

import msgspec

from flue_grpc.store.values import ToolCall

_FALLBACK: Final = "flue:extra"
_FUNCTION: Final = "function."
# How deep a text is when the decoder gives up depends on the caller's stack.
_SPARE_DEPTH: Final = 400
_CALL_MEMBERS: Final = frozenset(("id", "type", "function", _FALLBACK))
_FUNCTION_MEMBERS: Final = frozenset(("name", "arguments"))
_Members = dict[str, msgspec.Raw]


class _Function(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    arguments: str


class _Call(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    type: str
    function: _Function


_ENCODER: Final = msgspec.json.Encoder()
_PLAIN: Final = msgspec.json.Decoder(list[_Call])
_ANY: Final = msgspec.json.Decoder(list[_Members] | None)
_OBJECT: Final = msgspec.json.Decoder(_Members)
_TEXT: Final = msgspec.json.Decoder(str)
_TEXTS: Final = msgspec.json.Decoder(dict[str, str])
_VALUE: Final = msgspec.json.Decoder()


def normal(call: ToolCall) -> ToolCall:
    """Return the call as it is read back: its extra members once each, sorted by name."""
    if not call.extra:
        return call
    return msgspec.structs.replace(call, extra=tuple(sorted(dict(call.extra).items())))


def encode_tool_calls(calls: tuple[ToolCall, ...]) -> str:
    """Write the column; no calls are an empty text."""
    return _ENCODER.encode([_encode(call) for call in calls]).decode() if calls else ""


def decode_tool_calls(text: str) -> tuple[ToolCall, ...]:
    """Read the column; a text that is no list of objects is one call with it as extra ``raw``."""
    calls = read_tool_calls(text) if text else ()
    return (ToolCall("", "", "", "", (("raw", text),)),) if calls is None else calls


def read_tool_calls(text: str) -> tuple[ToolCall, ...] | None:
    """Read a list of calls; None when it is no list of objects."""
    try:
        plain = _PLAIN.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return _read_any(text)
    return tuple(
        ToolCall(call.id, call.type, call.function.name, call.function.arguments) for call in plain
    )


def _read_any(text: str) -> tuple[ToolCall, ...] | None:
    try:
        return tuple(_decode(members) for members in _ANY.decode(text) or ())
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _encode(call: ToolCall) -> dict[str, object]:
    function: dict[str, object] = {"name": call.name, "arguments": call.arguments}
    members: dict[str, object] = {"id": call.id, "type": call.type, "function": function}
    misfits: dict[str, str] = {}
    for name, text in call.extra:
        member = name.removeprefix(_FUNCTION)
        is_inner = member != name
        taken = _FUNCTION_MEMBERS if is_inner else _CALL_MEMBERS
        if member in taken or not _is_whole_json(text):
            misfits[name] = text
        else:
            (function if is_inner else members)[member] = msgspec.Raw(text)
    if misfits:
        members[_FALLBACK] = misfits
    return members


def _is_whole_json(text: str) -> bool:
    """Whether the text is a JSON value that comes back without a change, in one line."""
    if not text or text[0].isspace() or text[-1].isspace() or "\n" in text:
        return False
    try:
        _VALUE.decode(text)
        _VALUE.decode("[" * _SPARE_DEPTH + text + "]" * _SPARE_DEPTH)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True


def _decode(members: _Members) -> ToolCall:
    extra: dict[str, str] = {}
    call_id = _take_text(members, "id", "", extra)
    kind = _take_text(members, "type", "", extra)
    name = arguments = ""
    function = _take_object(members)
    if function is not None:
        name = _take_text(function, "name", _FUNCTION, extra)
        arguments = _take_text(function, "arguments", _FUNCTION, extra)
        extra.update((_FUNCTION + key, _raw_text(raw)) for key, raw in function.items())
    misfits = _take_misfits(members)
    extra.update((key, _raw_text(raw)) for key, raw in members.items())
    extra.update(misfits)
    return ToolCall(call_id, kind, name, arguments, tuple(sorted(extra.items())))


def _take_text(members: _Members, key: str, prefix: str, extra: dict[str, str]) -> str:
    raw = members.pop(key, None)
    if raw is None:
        return ""
    try:
        return _TEXT.decode(raw)
    except msgspec.ValidationError:
        extra[prefix + key] = _raw_text(raw)
        return ""


def _take_object(members: _Members) -> _Members | None:
    try:
        function = _OBJECT.decode(members["function"])
    except (KeyError, msgspec.ValidationError):
        return None
    del members["function"]
    return function


def _take_misfits(members: _Members) -> dict[str, str]:
    try:
        misfits = _TEXTS.decode(members[_FALLBACK])
    except (KeyError, msgspec.MsgspecError):
        return {}
    del members[_FALLBACK]
    return misfits


def _raw_text(raw: msgspec.Raw) -> str:
    return bytes(raw).decode()
