"""Scripts without spaces, found at any length: one text a line, what finds it, what does not."""

from __future__ import annotations

import pytest

from flue_grpc.text.index_form import index_text
from flue_grpc.text.locate import chunks
from flue_grpc.text.match import verifier
from flue_grpc.text.query import parse_plain
from flue_grpc.text.tokenizer import tokens

from .fts import Index

TABLE = [
    # Chinese, from one character on, as a substring.
    ("今天数据库很慢", "数 库 数据 数据库 今天数据库很慢 慢 天数 库很", "据数 数库 昨 慢慢 数据库慢"),
    ("我们的数据 库", "数据库 数 据库", "数据们"),
    ("第一行\n第二行", "行第 第二 一行", "二第"),
    ("全\u3000角", "全角", "角全"),
    ("零\u200b宽", "零宽 零 宽", "宽零"),
    ("人人人山人海", "人 人人 人人人 山人海", "人人人人 海人"),
    ("𠮷野家は𠮷", "𠮷 𠮷野 野家 𠮷野家", "吉野家 家𠮷"),
    ("佐々木さん", "佐々木 々 々木 木さん", "佐佐木 々佐"),
    ("二〇二四年", "〇 二〇 〇二四", "二零"),
    ("葛\U000e0100城市", "葛城 葛城市", "葛\U000e0100市"),
    ("\uf900", "\u8c48", "\u8c49"),
    # Punctuation stops a phrase, white space, format characters and emoji do not.
    ("今日。本", "今日 本 今日。本", "日本"),
    ("今日、本、屋", "本、屋 今日、本 今日！本", "日本 本屋"),
    ("今日, 本", "今日 本", "日本"),
    ("今日。\n本", "本 日", "日本"),
    ("「今日」本", "今日 本", "日本"),
    ("今日😀本", "日本 今日本 今日😀本", "本日"),
    ("今日👨\u200d👩\u200d👧本", "日本", "本日"),
    ("今日🤖本", "日本", "本日"),
    ("今日+本", "日本 今日+本", "本日"),
    ("今日word本", "今日word本 今日 word 本", "日本 wor 日word今"),
    ("今日 x 本", "今日 x 本", "日本"),
    ("今日-x-本", "今日x本 日-x", "日本"),
    # Mixed with Latin: Latin stays a word, split characters are a substring.
    ("用SQLite锁住数据库DB文件", "SQLite锁 用SQLite sqlite 锁住 库DB DB文 数据库DB文件", "lite锁 库D B文"),
    ("版本2.0发布", "版本2.0 版本2 0发布 2.0", "版本0 本.0发 版本20"),
    ("2024年11月5日", "年11月 11月5日 2024年 5日", "024年 年1月 月11"),
    ("Python的GIL", "的GIL Python的 gil", "的GI on的"),
    ("用 Go 写", "用 写 go", "用写"),
    ("数据库DB", "数据库db 据库ＤＢ", "数据库d"),
    ("C++と日本語", "C++と と日本語 c 日本", "c日本 本日"),
    # Japanese.
    ("カタカナとひらがな", "カ カナ タカナ と ひらがな がな", "かたかな カカ なと"),
    ("データベース", "データ ータ ベース ー データベース", "デタ スベ"),
    ("ジョン・スミス", "ジョン スミス ジョン・スミス", "ジョンスミス ンス"),
    ("ﾃﾞｰﾀﾍﾞｰｽ", "データベース データ ﾍﾞｰｽ ー", "テータ"),
    ("データベース ", "ﾃﾞｰﾀﾍﾞｰｽ ﾃﾞ ﾀﾍﾞ", "ﾃﾀ"),
    ("が", "か\u3099 が", "か ｶﾞ"),
    ("か\u3099き\u3099", "がぎ が ぎ", "かき ガギ ｶﾞｷﾞ"),
    ("ト\u309a", "ト ト\u309a", "ド"),
    ("𛀀𛀁", "𛀀 𛀁 𛀀𛀁", "𛀁𛀀"),
    ("〆切は明日", "〆切 〆 明日", "締切"),
    ("ㇰㇱ", "ㇰ ㇰㇱ", "クシ"),
    # Width forms.
    ("ＡＢＣ１２３", "abc123 ＡＢＣ１２３ ABC123", "abc bc12"),
    ("abc123", "ＡＢＣ１２３ ａｂｃ１２３", "ＡＢＣ"),
    ("全角！ＯＫ？", "全角 OK ok 全角！ＯＫ 全角OK", "全OK"),
    ("ｱｲｳ｡ｴｵ", "アイウ エオ ｱｲ", "ウエ ｳｴ"),
    # Korean.
    ("한국어 검색", "한 국어 한국어 검색 색", "국한 어한"),
    ("데이터베이스", "데이 터베 베이스", "데베"),
    ("\u1112\u1161\u11ab\u1100\u116e\u11a8", "한국 한 국", "하 국한"),
    ("한국", "\u1112\u1161\u11ab \u1100\u116e\u11a8 \u1112\u1161\u11ab\u1100\u116e\u11a8", "\u1112\u1161"),
    ("ㅋㅋㅋ", "ㅋ ㅋㅋ ㅋㅋㅋ", "ㅋㅋㅋㅋ ㅎ"),
    ("\uffa1\uffc2\uffa4", "가 \u1100\u1161", "간 나"),
    # Thai, Lao, Khmer, Myanmar, Tibetan, with their signs.
    ("กินข้าวแล้ว", "กิน ข้าว ข้าวแล้ว ก กิ าว น", "กน ขาว แลว"),
    ("ที่นี่", "ที่ นี่ ที นี", "ทน ทนี"),
    ("ราคา๑๒๓บาท", "๑๒ ๑๒๓บาท ราคา", "๑๓"),
    ("ก๏ข", "ก ข", "กข"),
    ("ສະບາຍດີ", "ສະ ບາຍ ດີ ສະບາຍດີ", "ສາ"),
    ("សួស្តី", "សួ ស្តី ស", "សតី"),
    ("មួយ។ពីរ", "មួយ ពីរ", "យព"),
    ("မြန်မာ", "မြန် မာ မ", "မန မန်"),
    ("བཀྲ་ཤིས", "བཀྲ ཤིས བཀྲ་ཤིས", "བཀྲཤིས བཤ"),
    # Bopomofo, and scripts written with spaces, which stay whole words.
    ("ㄅㄆㄇ", "ㄅ ㄆㄇ ㄅㄆㄇ", "ㄅㄇ"),
    ("नमस्ते दुनिया", "नमस्ते दुनिया", "नमस् दु नमस"),
    ("مرحبا بالعالم", "مرحبا بالعالم", "مرح عالم"),
    ("שלום עולם", "שלום עולם", "שלו"),
    ("Привет мир", "привет МИР ПРИВЕТ", "при ет"),
    ("ёлка", "ёлка Ёлка", "елка"),
    ("Ελλάδα", "ελλάδα ΕΛΛΆΔΑ", "ελλ"),
    ("οδός", "ΟΔΌΣ οδός", "οδό"),
    # Latin: case, accents, composed or not, words of several runs.
    ("résumé", "resume RÉSUMÉ re\u0301sume\u0301 Résume", "resum"),
    ("re\u0301sume\u0301", "résumé resume", "r sume"),
    ("й", "й и\u0306", "и"),
    ("naïve café", "naive cafe", "naiv caf"),
    ("don't foo-bar parse_line", "don't foo-bar parse_line don foo bar parse-line", "dont foobar t-foo-x"),
    ("a\0b", "a\0b a b", "ab"),
    ("x² ½ Ⅻ", "x² ½ ⅻ", "x ² 12"),
    ("straße", "straße STRAẞE", "strasse STRASSE"),
    ("\u212aelvin", "kelvin \u212aelvin", "elvin"),
    ("ﬁne", "ﬁne", "fine"),
    ("\uf8ff\ue001", "\uf8ff\ue001", "\uf8ff \ue001 \ue000"),
    ("a\ue000b", "a\ue000b", "a b ab"),
    ("日。本", "日", "\ue000 日\ue000本"),
    # Emoji, selectors and marks that stand on nothing leave the words beside them whole.
    ("❤️love🤖robot", "love robot ❤️love", "lov"),
    ("1️⃣first", "1 first", "2"),
    ("ok👍🏽done", "ok done ok👍🏽done ok-done", "okdone"),
    ("\u0301lead _\u0301x", "lead x", "lea"),
    ("ไทย\u0301x", "ไทย x ไทยx", "ไทยy"),
]  # fmt: skip


def cases():
    rows = []
    for text, found, missed in TABLE:
        for queries, expected in ((found, True), (missed, False)):
            for query in queries.split(" "):
                name = f"{text}{'~!'[not expected]}{query}".encode("unicode_escape").decode()
                rows.append(pytest.param(text, query, expected, id=name))
    return rows


def test_the_table_is_large_enough():
    assert len(cases()) >= 240


@pytest.mark.parametrize(("text", "query", "expected"), cases())
def test_split_scripts(text, query, expected):
    parsed = parse_plain(query)
    assert Index([text]).find(parsed) == ([0] if expected else [])
    assert (not parsed.matches_nothing and verifier(parsed).accepts(text)) == expected


@pytest.mark.parametrize("text", [text for text, _, _ in TABLE])
def test_located_tokens_are_those_of_the_index(text):
    located = [token for chunk in chunks(text, 1) for _, _, token in chunk.tokens]
    assert located == tokens(index_text(text))
