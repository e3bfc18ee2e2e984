"""Search of texts through a real FTS5 table, and the same by plain Python."""

from __future__ import annotations

import unicodedata

import apsw

from flue_grpc.text.index_form import index_text
from flue_grpc.text.match import lookup
from flue_grpc.text.tokenizer import TOKENIZER

SPLIT_NAMES = (
    "CJK UNIFIED", "CJK COMPATIBILITY IDEOGRAPH", "HIRAGANA", "KATAKANA", "BOPOMOFO", "HANGUL",
    "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN",
)  # fmt: skip


class Index:
    """A contentless table over some texts; rowids are their numbers."""

    def __init__(self, texts):
        self.texts = list(texts)
        self._db = apsw.Connection(":memory:")
        self._db.execute(
            "CREATE VIRTUAL TABLE s USING fts5(content, content='', contentless_delete=1, "
            f'tokenize="{TOKENIZER}")'
        )
        for number, text in enumerate(self.texts):
            self._db.execute(
                "INSERT INTO s(rowid, content) VALUES (?, ?)", (number, index_text(text))
            )

    def find(self, query):
        """Return the numbers of the texts that ``query``, parsed, matches."""
        if query.matches_nothing:
            return []
        plan = lookup(query)
        rows = self._db.execute(
            "SELECT rowid FROM s WHERE s MATCH ? ORDER BY rowid", (plan.expression,)
        )
        found = [number for (number,) in rows]
        if plan.verifier is None:
            return found
        return [number for number in found if plan.verifier.accepts(self.texts[number])]


def plain_tokens(text):
    """Cut ``text`` into tokens by Unicode categories and names alone."""
    width = "".join(
        unicodedata.normalize("NFKC", run) if "\uff00" <= run[:1] <= "\uffef" else run
        for run in _runs(text)
    )
    found, word, gap = [], "", ""
    after_split = False
    for char in unicodedata.normalize("NFC", width):
        category = unicodedata.category(char)
        carried = is_mark(char)
        is_split = (
            unicodedata.name(char, "").startswith(SPLIT_NAMES) or char in "々〆〇ー\u3099\u309a"
        )
        is_split = is_split and category[0] in "LNM"
        token = category[0] in "LN" or category == "Co" or (carried and bool(word or after_split))
        if carried and after_split and not word and not (is_split and all(map(is_mark, gap))):
            token = False
        if token and not is_split:
            word += "\ue000\ue000" if char == "\ue000" else char
            continue
        if word:
            found.append(fold(word))
            word, gap, after_split = "", "", False
        if token:
            if after_split and any(unicodedata.category(c)[0] == "P" for c in gap):
                found.append("\ue000")
            found.append(char)
            gap, after_split = "", True
        else:
            gap += char
    return [*found, fold(word)] if word else found


def is_mark(char):
    is_selector = "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"
    return unicodedata.category(char) in ("Mn", "Mc") and not is_selector


def _runs(text):
    runs = [""]
    for char in text:
        if ("\uff00" <= char <= "\uffef") != ("\uff00" <= runs[-1][-1:] <= "\uffef"):
            runs.append("")
        runs[-1] += char
    return runs


def fold(word):
    """Fold case, and diacritics of Latin letters."""
    folded = word.lower().replace("ς", "σ").replace("\u0301", "")
    return "".join(
        unicodedata.normalize("NFD", char)[0] if "LATIN" in unicodedata.name(char, "") else char
        for char in folded
    )


def plain_matches(words, text):
    """Say whether the tokens of each word stand side by side in ``text``."""
    tokens = plain_tokens(text)
    wanted = [plain_tokens(word) for word in words]
    wanted = [word for word in wanted if word]
    return bool(wanted) and all(
        any(tokens[at : at + len(word)] == word for at in range(len(tokens))) for word in wanted
    )
