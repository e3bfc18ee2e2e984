"""Text of strangers, made harmless for a terminal, a line, JSON and a spreadsheet."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Final

from flue_grpc.text.harmless import BIDI, for_line, for_terminal, visible

__all__ = ["as_json", "for_cell", "for_line", "for_terminal", "visible"]

_JSON_UNSAFE: Final = re.compile(f"[\x7f-\x9f\u2028\u2029{BIDI}]")
_FORMULA: Final = ("=", "+", "-", "@")
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cn", "Co", "Mn", "Me", "Zl", "Zp", "Zs"})


def as_json(value: object) -> str:
    """Write one line of JSON that is safe on a terminal too."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _JSON_UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def for_cell(text: str) -> str:
    """Make one line that no spreadsheet takes for a formula.

    Some read a wide sign as the plain one, and some skip what cannot be seen before it.
    """
    line = for_line(text)
    seen = next((each for each in line if unicodedata.category(each) not in _UNSEEN), "")
    return f"'{line}" if unicodedata.normalize("NFKC", seen).startswith(_FORMULA) else line
