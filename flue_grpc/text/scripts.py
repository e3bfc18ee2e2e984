"""The one table of code points that search treats specially (behaviour A3.3).

``SPLIT`` holds the token characters (L*, N*, Mn, Mc) of scripts written without spaces.
``OPAQUE`` holds symbols, punctuation and format characters that SQLite's tokenizer takes
for token characters, because its Unicode tables are older than they are. Both are bodies
of regular expression classes, fixed here so that an index means the same under any Python.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Final

_HAN: Final = (
    "3005-3007 3021-302D 3038-303C 3400-4DBF 4E00-9FFF F900-FA6D FA70-FAD9 16FE3-16FE4 "
    "16FF0-16FF6 20000-3FFFD"
)
_KANA: Final = (
    "3031-3035 3041-3096 3099-309A 309D-309F 30A1-30FA 30FC-30FF 31F0-31FF 1AFF0-1AFFE 1B000-1B16F"
)
_BOPOMOFO: Final = "3105-312F 31A0-31BF"
_HANGUL: Final = "1100-11FF 302E-302F 3131-318E A960-A97C AC00-D7A3 D7B0-D7C6 D7CB-D7FB"
_THAI: Final = "0E01-0E3A 0E40-0E4E 0E50-0E59"
_LAO: Final = "0E81-0EBD 0EC0-0ECE 0ED0-0ED9 0EDC-0EDF"
_KHMER: Final = "1780-17D3 17D7 17DC-17DD 17E0-17E9 17F0-17F9"
_MYANMAR: Final = "1000-1049 1050-109D A9E0-A9FE AA60-AA76 AA7A-AA7F 116D0-116E3"
_TIBETAN: Final = (
    "0F00 0F18-0F19 0F20-0F33 0F35 0F37 0F39 0F3E-0F6C 0F71-0F84 0F86-0F97 0F99-0FBC 0FC6"
)
_OPAQUE: Final = """
58D-58E 605 61C-61D 7FE-7FF 888 890-891 8E2 9FD A76 C77 C84 D4F 1ABE 1B4E-1B4F 1B7D-1B7F
2066-2069 20BA-20C4 218A-218B 23F4-23FF 2427-2429 2700 2B4D-2BFF 2E3C-2E63 2FFC-2FFF 31E4-31EF
32FF A8FC AB5B AB6A-AB6B FBC2-FBD2 FD40-FD4F FD90-FD91 FDC8-FDCF FDFE-FDFF 1018C-101A0 1056F
10877-10878 10AC8 10AF0-10AF6 10B99-10B9C 10D6E 10D8E-10D8F 10EAD 10EC9-10ECA 10ED0-10ED8
10F55-10F59 10F86-10F89 110CD 11174-11175 111CD 111DB 111DD-111DF 11238-1123D 112A9 113D4-113D8
1144B-1144F 1145A-1145D 114C6 115C1-115D7 11641-11643 11660-1166C 116B9 1173C-1173F 1183B
11944-11946 119E2 11A3F-11A46 11A9A-11A9C 11A9E-11AA2 11B00-11B09 11BE1 11C41-11C45 11C70-11C71
11EF7-11EF8 11F43-11F4F 11FD5-11FFF 12474 12FF1-12FF2 13430-1343F 16A6E-16A6F 16AF5 16B37-16B3F
16B44-16B45 16D6D-16D6F 16E97-16E9A 16FE2 1BC9C 1BC9F-1BCA3 1CC00-1CCEF 1CCFA-1CEFF 1CF50-1CFC3
1D1DE-1D1FF 1D253-1D25A 1D25D-1D25E 1D260-1D27F 1D800-1D9FF 1DA37-1DA3A 1DA6D-1DA74 1DA76-1DA83
1DA85-1DA8B 1DB00-1DB1C 1E14F 1E2FF 1E5FF 1E95E-1E95F 1ECAC 1ECB0 1ED2E 1F0BF 1F0E0-1F0F5
1F10D-1F10F 1F12F 1F16C-1F16F 1F19B-1F1AE 1F23B 1F260-1F265 1F321-1F336 1F37D-1F39F 1F3C5-1F3FF
1F43F-1F441 1F4F8-1F4FF 1F53E-1F5FA 1F641-1F67F 1F6C6-1F6FF 1F774-1FBEF 1FBFA
"""
# Where Mn and Mc stand in planes 0 and 1; scanning only these keeps the first use quick.
_MARK_BLOCKS: Final = (
    "300-36F 483-489 591-5C7 610-6ED 711-1DFF 20D0-20F0 2CEF-2CF1 2D7F-2DFF 302A-302F 3099-309A "
    "A66F-A6F1 A802-ABED FB1E FE20-FE2F 101FD-11FFF 13440-13455 1611E-1612F 16AF0-16FF1 "
    "1BC9D-1BC9E 1CF00-1CF46 1D165-1D244 1DA00-1DAAF 1E000-1E94A"
)


def _bounds(table: str) -> list[tuple[int, int]]:
    """Read ``first-last`` pairs of hexadecimal code points."""
    pairs = (entry.partition("-") for entry in table.split())
    return [(int(first, 16), int(last or first, 16)) for first, _, last in pairs]


def _class_body(bounds: list[tuple[int, int]]) -> str:
    """Write code point ranges as the inside of a regular expression class."""
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in bounds)


SPLIT: Final = "".join(
    _class_body(_bounds(script))
    for script in (_HAN, _KANA, _BOPOMOFO, _HANGUL, _THAI, _LAO, _KHMER, _MYANMAR, _TIBETAN)
)
OPAQUE: Final = _class_body(_bounds(_OPAQUE))
MARK_BLOCKS: Final = _class_body(_bounds(_MARK_BLOCKS))
PRIVATE_USE: Final = "\\ue000-\\uf8ff\\U000f0000-\\U0010fffd"
ASTRAL: Final = "\\U00010000-\\U0010ffff"


@cache
def bmp(body: str) -> str:
    """Leave the ranges above U+FFFF out of a class body: such a class is far faster."""
    ranges = (body[place : place + 21] for place in range(0, len(body), 21))
    return "".join(entry for entry in ranges if entry[2:6] == "0000")


@cache
def marks() -> tuple[str, str]:
    """Return the combining marks (Mn, Mc): all, and those of scripts written with spaces.

    Variation selectors are in neither.
    """
    every = [
        code
        for first, last in _bounds(_MARK_BLOCKS)
        for code in range(first, last + 1)
        if unicodedata.category(chr(code)) in ("Mn", "Mc")
    ]
    split = re.compile(f"[{SPLIT}]")
    spaced = [code for code in every if not split.match(chr(code))]
    return _class_body(_joined(every)), _class_body(_joined(spaced))


def _joined(codes: list[int]) -> list[tuple[int, int]]:
    """Join ascending code points to ranges."""
    bounds: list[tuple[int, int]] = []
    for code in codes:
        if bounds and bounds[-1][1] == code - 1:
            bounds[-1] = (bounds[-1][0], code)
        else:
            bounds.append((code, code))
    return bounds
