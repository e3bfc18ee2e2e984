"""Query strings that must be answered without an error by every search.

All are below 8 KiB, none is blank, and none asks for more than the language of words.
"""

from __future__ import annotations

_OPERATORS = """
AND OR NOT NEAR and or not near
AND AND|a AND|AND b|a AND AND b|a OR|OR b|NOT|NOT x|x NOT|a NOT b|NOT NOT x|a AND NOT b
NEAR(a b)|NEAR(a b, 2)|NEAR(|NEAR()|NEAR("a" "b", -1)|NEAR/3|a NEAR/2 b|near(a,b)
a + b|a+b|+a|a+|+|++|C++|c#|F#|.NET|node.js|a.b.c|a:b|content:x|{a b}:x|-content:x|{a}|- {a}: b
col : x|rowid:1|rank:1|s:x|fts:x|ranked:*|^a|^|a^|a ^ b|^^|(a)|(a|a)|()|((((|))))|(a b)|(a OR b) AND c
a AND (b OR|[a]|[|]|{|}|{}|<a>|<|>|a<b>c|&|&&|a&b|a && b|pipe|%|%a%|_|__|a_b|_a_|100%|a%b|?|a?b|??|!|!a
*|**|***|a*|*a|a*b|* *|a * b|*a*|a**|'*'|"*"|a *|a * *|-*|*-|~|~a|~~|`|`a`|``|$|$a|$1|${x}|$(x)|@|@a|#|#1|;|;;
a;b|,|,,|a,b|.|..|...|a...b|/|//|/a/b|/usr/bin|a/b|\\|\\\\|\\n|a\\b|C:\\dir|\\"|\\'|=|==|a=b|a==b|=1|-|--|---|-a|--a|a-|a--b|- a
a - b|-a -b|-1|1-|- -|–|—|a—b
""".strip().replace("\n", "|")

_QUOTES = [
    '"', '""', '"""', '""""', '"a', 'a"', '"a"', '"a" "b', 'a"b', 'a""b', '"a""b"', '" "', '"  a  "',
    '"a b"*', '"*"', '"a" *', '"-a"', '-"a"', '"AND"', '"NOT" "OR"', "'", "''", "'''", "'a", "a'", "'a'",
    "don't", "''a''", "it's 'quoted'", "'; DROP TABLE messages; --", "1' OR '1'='1", '1" OR "1"="1',
    "a' UNION SELECT * FROM sqlite_master --", '") OR ("', '" OR "" = "', "Robert'); DROP TABLE s;--",
    "\u201ca\u201d", "\u2018a\u2019", "\u00aba\u00bb", "\u300ca\u300d", "\uff02a\uff02", "\u2033", '5"', "6'2\"",
]  # fmt: skip

_CONTROL = [
    "\0", "\0\0", "a\0b", "\0a", "a\0", "a \0 b", '"\0"', "*\0", "\x01", "\x07", "\x08", "\x1b", "\x1b[31m",
    "\x1b[0mred\x1b[K", "\x1f", "\x7f", "a\x7fb", "\x80", "\x85a", "\x9b", "\x9f", "a\tb", "a\nb", "a\r\nb",
    "a\x0bb", "a\x0cb", "\u2028a", "a\u2029b", "\ufeffa", "\ufeff", "\ufffd", "a\ufffdb", "\ufffea", "\uffff",
    "\ufdd0", "\U0001fffe", "\U0010ffff", "\U000fffff", "\ud800", "\udfff", "a\ud83d", "\ude00a", "\ud83d\ude00",
    "\u200b", "a\u200bb", "\u200d", "\u200e\u200f", "\u202ea", "\u2060", "\u2066a\u2069", "\u061c", "\u180e",
    "\u00ad", "co\u00adop", "\u034f", "\u115f", "\u3164", "\uffa0", "\u2800", "\U000e0041", "\U000e0001", "\u206f",
]  # fmt: skip

_MARKS = [
    "\u0301", "\u0301\u0301", "a\u0301", "\u0301a", "a \u0301", "e\u0301e\u0301", "e\u0301", "\u0301*", "-\u0301",
    "a" + "\u0301" * 50, "a" + "\u0301\u0323" * 50,
    "Z\u0351\u036b\u0343a\u036c\u0349lgo\u0321\u0353", "\u0345", "\u0308i", "i\u0307", "\u0130",
    "\u0131", "\u00df", "\u1e9e", "\u017f", "\u212a", "\u212b", "\u2126", "\ufb01", "\ufb03le", "\u01c4", "\u01c5",
    "\u03a3", "\u03c2", "\u1f80", "\u1fb3", "\u0390", "\u1e9b\u0323", "\u023a", "\u2c65", "\u10a0", "\u13a0", "\uab70",
    "\ufe0f", "\ufe0fa", "a\ufe0f", "\ufe0f\ufe0f", "\U000e0100", "\u845b\U000e0100", "\u20e3", "1\ufe0f\u20e3",
    "\u064b", "\u0628\u064e", "\u05b0", "\u05d0\u05b0", "\u093e", "\u0915\u093e", "\u0e34", "\u0e01\u0e34", "\u3099",
    "\u304b\u3099", "\u302a", "\u0f71", "\u1039", "\u17d2", "\U0001d165", "\U00011046", "\u1abe", "\u0488",
]  # fmt: skip

_SYMBOLS = [
    "\U0001f600", "\U0001f600\U0001f600", "\U0001f916", "\u2764\ufe0f", "\u2764", "\U0001f44d\U0001f3fd",
    "\U0001f3fd", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea", "\U0001f1e9",
    "\U0001f3f4\U000e0067\U000e0062\U000e007f", "a\U0001f600b", "\U0001f916a", "\u2705", "\u26a0\ufe0f", "\u2192",
    "a\u2192b", "\u20bf", "\u20ac", "\u20ac5", "\u00b1", "\u00b2", "x\u00b2", "\u00bd", "\u2160", "\u2460", "\u3220",
    "\u221e", "\u2211", "\u222b", "\u2500", "\u2588", "\u2603", "\u00a9", "\u2122", "\u2116", "\U0001d400", "\U0001f170",
    "\U0001fae8", "\U0001fac8", "\u2e3a", "\u2e55", "\u00a7", "\u00b6", "\u2026", "\u2030", "\ue000", "\ue000a",
    "\ue000\ue000", "\ue001", "\uf8ff", "a\uf8ff", "\U000f0000", "\U0010fffd", "\u0378", "\U000e0080",
]  # fmt: skip

_SCRIPTS = [
    "\u65e5", "\u65e5\u672c", "\u65e5\u3002\u672c", "\u3002", "\u3001\u3001", "\u65e5*", "-\u65e5", "*\u65e5",
    "\u65e5 \u672c", "\u65e5\u3000\u672c", "\u3000a\u3000", "\u65e5\u200b\u672c", "\u3005", "\u3007", "\u30fc",
    "\u30fb", "\u30ab\u30fb\u30ab", "\uff76\uff9e", "\uff9e", "\uff70", "\uff65", "\uff21", "\uff0a", "\uff0d\uff21",
    "\uff02", "\uff5e", "\uffe3", "\uffe5", "\uffa1\uffc2", "\u1112\u1161\u11ab", "\u11ab", "\ud55c", "\u3131",
    "\u0e01", "\u0e01\u0e34\u0e19", "\u0e3f", "\u0e4f", "\u0e5b", "\u0ea5\u0eb2\u0ea7", "\u1780\u17d2\u1798", "\u17d4",
    "\u1019\u103c\u1014\u103a", "\u104a", "\u0f56\u0f7c\u0f51\u0f0b", "\u0f0b", "\u0f0d\u0f0d", "\U00020bb7",
    "\U00020bb7a", "\U0002f800", "\U00030000", "\U0001b000", "\u3105", "\u02ea", "\u31f0", "SQLite\u9501",
    "\u9501SQLite", "\u6570\u636e\u5e93DB", "\u7248\u672c2.0", "2024\u5e7411\u6708", "\u0645\u0631\u062d\u0628\u0627",
    "\u05e9\u05dc\u05d5\u05dd", "\u0928\u092e\u0938\u094d\u0924\u0947", "\u043f\u0440\u0438\u0432\u0435\u0442",
    "\u0451", "\u03b3\u03b5\u03b9\u03ac", "\u10d2", "\u0531", "\u1200", "\u1820", "\u16a0", "\U00010330", "\U0001e900",
    "\u065a\u06af", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "\u0dc1\u0dca\u200d\u0dbb\u0dd3",
]  # fmt: skip

_LONG = [
    "a" * 8192, "\u65e5" * 2730, ("\u65e5\u672c" * 1365)[:2730], "a " * 4095, "ab " * 2700, "\u65e5 " * 2000,
    "*" * 8000, '"' * 8000, "-" * 8000, "(" * 8000, "'" * 8000, "\0" * 8000 + "a", "\u0301" * 4000, "\U0001f600" * 2000,
    "a\u0301" * 2700, "a" + "\u0301\u0323" * 2000, "\u0436" * 4000, "\u1161\u11a8" * 1300,
    "a-" * 4000, "a_b " * 2000, "\u3002\u65e5" * 1300, " ".join(map(str, range(1600))),
    "".join(map(chr, range(1, 1024))), "x" * 70 + " " + "y" * 70, "a.b" * 2700, "\ue000" * 2700, "\u0e01\u0e34" * 1300,
]  # fmt: skip

_WORDS = [
    "null", "None", "undefined", "NaN", "true", "0", "-0", "1e309", "0x00", "1/0", "\u0664\u0662", "a" * 300, "A",
    "the", "I'm", "e.g.", "user@example.com", "https://a.example/b?c=d&e=f#g", "foo(bar)", "a->b", "a::b", "x != y",
    "<script>alert(1)</script>", "{{7*7}}", "%s%s%n", "%00", "../../etc/passwd", "~/.ssh", "2024-01-02T03:04:05Z",
    "127.0.0.1:80", "::1", "v1.2.3-rc.1+build", "#include <x.h>", "SELECT * FROM t WHERE a = 'b'", "rm -rf /",
    "git push --force", "key=value", "snake_case", "camelCase", "kebab-case", "CONSTANT_CASE", "a|b", "|", "||",
]  # fmt: skip

NASTY: tuple[str, ...] = tuple(
    dict.fromkeys(
        query
        for group in (
            _OPERATORS.split("|"), _QUOTES, _CONTROL, _MARKS, _SYMBOLS, _SCRIPTS, _LONG, _WORDS,
        )
        for query in group
        if query.strip()
    )
)  # fmt: skip
