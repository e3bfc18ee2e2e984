from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flue_grpc import limits
from flue_grpc.errors import CancelledError, EmptyQueryError, QueryTooLongError
from flue_grpc.store import message_search, ranked
from flue_grpc.store.connections import open_reader
from flue_grpc.store.ranked import SearchCursor
from flue_grpc.store.store import Store
from flue_grpc.store.values import (
    COMPACTION_MARKER,
    DEFAULT_SETTINGS,
    Draft,
    MessageQuery,
    ToolCall,
)
from tests.unit.text.nasty_queries import NASTY


@pytest.fixture
def search(store, items):
    def found(query, limit=1000, **fields):
        return items(store.search_messages(MessageQuery(query, **fields), limit=limit))

    return found


@pytest.fixture
def ids(search):
    def found(query, **fields):
        return [result.message.id for result in search(query, **fields)]

    return found


def test_only_what_people_and_models_said_is_found(say, ids):
    say("needle", "user")
    say("needle", "assistant")
    say("needle", "tool", tool_call_id="c", name="bash")
    say("needle", "system")
    say("needle", "system", name=COMPACTION_MARKER)
    say("needle", "user", name=COMPACTION_MARKER)
    say("", "assistant", tool_calls=(ToolCall("", "", "needle", "needle"),))
    assert sorted(ids("needle")) == [1, 2]


def test_a_result_tells_message_session_window_and_score(store, say, search):
    store.create_session("sub", "subagent: dig")
    message = say("the needle", session_id="sub", images=("data:abc",))
    (result,) = search("needle", scope="all")
    assert result.message.images == ("",)
    assert (result.message.content, result.message.id) == ("the needle", message.id)
    assert (result.session_title, result.is_subagent) == ("subagent: dig", True)
    assert [m.id for m in result.window] == [message.id]
    assert result.score < 0
    (whole,) = search("needle", scope="all", images="whole")
    assert whole.message == message
    assert whole.window[0].images == ("",)


def test_all_words_are_needed_in_any_order_and_equal_ones_count_once(say, ids):
    say("alpha beta gamma")
    say("alpha")
    assert ids("gamma alpha") == [1]
    assert ids("alpha alpha ALPHA alpha") == ids("alpha")


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("you don't say", "don't"),
        ("a foo-bar b", "foo-bar"),
        ("def parse_line(x):", "parse_line"),
        ("written in C++ and C#", "C++"),
        ("a NOT x b", "NOT x"),
        ('he said "hi"', '"hi"'),
        ("résumé", "resume"),
        ("resume", "RÉSUMÉ"),
        ("nai\u0308ve cafe\u0301", "naïve café"),
        ("naïve café", "nai\u0308ve cafe\u0301"),
        ("a\0b", "a\0b"),
        ("a b", "a\0b"),
        ("数据库锁定了", "数"),
        ("数据库锁定了", "据库锁"),
        ("使用SQLite数据库", "SQLite数据"),
        ("使用SQLite数据库", "数据 sqlite"),
        ("版本2.0发布", "版本2.0"),
        ("東京タワー", "タワー"),
        ("ｶﾞﾗｽ", "ガラス"),
        ("ガラス", "ｶﾞﾗｽ"),
        ("ＡＢＣ", "abc"),
        ("한국어 검색", "국어"),
        ("ภาษาไทย", "ไทย"),
        ("时々刻々", "々"),
        ("𠮷野家", "𠮷"),
        ("हिन्दी में", "हिन्दी"),
        ("x = 1.5e-3;", "1.5e-3"),
    ],
)
def test_words_are_found_as_they_are_written(say, ids, text, query):
    say("nothing of the kind")
    say(text)
    assert ids(query) == [2]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("foo baz bar", "foo-bar"),
        ("parse the line", "parse_line"),
        ("t don", "don't"),
        ("今日。本", "日本"),
        ("数库据", "数据"),
        ("SQLite锁", "lite锁"),
        ("straße", "strasse"),
        ("words", "word"),
        ("wording", "word*"),
        ("alpha beta", "alpha NOT beta"),
        ("alpha", "alpha OR beta"),
    ],
)
def test_words_are_not_found_where_they_are_not(say, ids, text, query):
    say(text)
    assert ids(query) == []


@pytest.mark.parametrize("query", ["*", "-", "🙂", "+++", "\u0301", "\ufe0f", '"', "。、"])
def test_a_query_without_words_finds_nothing(say, ids, query):
    say(f"{query} x")
    assert ids(query) == []
    assert ids(f"{query} x") == [1]


@pytest.mark.parametrize("query", ["", " ", "\t\n", "\u3000"])
def test_a_blank_query_is_an_error(search, query):
    with pytest.raises(EmptyQueryError):
        search(query)


def test_a_query_is_at_most_8_kib(say, ids, search):
    say("x" * 10)
    assert ids("y" * 8192) == []
    with pytest.raises(QueryTooLongError):
        search("é" * 4097)


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    opened = Store.open(tmp_path_factory.mktemp("nasty") / "data" / "store.db")
    opened.create_session("s", "t")
    for content in ("plain words here", "数据库 SQLite", "a b c"):
        opened.append_message("s", Draft("user", content))
    yield opened
    opened.close()


def test_there_are_enough_nasty_queries():
    assert len(set(NASTY)) >= 300


@pytest.mark.parametrize("query", NASTY)
def test_nasty_queries_are_answered_without_an_error(filled, query):
    for placed in filled.search_messages(MessageQuery(query)):
        assert placed.item.message.session_id == "s"


@settings(max_examples=100, deadline=None)
@given(query=st.text(min_size=1, max_size=40).filter(lambda text: text.strip()))
def test_any_query_is_answered_without_an_error(filled, query):
    list(filled.search_messages(MessageQuery(query)))


def test_a_message_that_is_a_nasty_query_is_found_by_it(tmp_path):
    opened = Store.open(tmp_path / "data" / "store.db")
    opened.create_session("s", "t")
    sound = [query for query in NASTY if query.isprintable() and any(c.isalnum() for c in query)]
    drafts = [Draft("user", query) for query in sound]
    for start in range(0, len(drafts), 1000):
        opened.append_messages("s", drafts[start : start + 1000])
    for query in sound[::7]:
        hits = {
            p.item.message.content for p in opened.search_messages(MessageQuery(query), limit=1000)
        }
        assert query in hits
    opened.close()


def test_long_phrases_are_verified_in_the_text(say, ids):
    phrase = "".join(chr(0x4E00 + number) for number in range(40))
    say(phrase)
    say(phrase[:20] + "X" + phrase[20:])
    say(phrase[:39])
    assert ids(phrase) == [1]
    assert ids(phrase[:20]) == [3, 2, 1]


class StopsAt:
    """A call whose client goes away while the search asks for the ``count``-th time."""

    def __init__(self, count) -> None:
        self.count = count

    def is_cancelled(self):
        return False

    def check(self):
        self.count -= 1
        if self.count == 0:
            raise CancelledError("the client went away")


def test_verifying_one_large_text_ends_when_nobody_waits(store, say, items):
    phrase = "".join(chr(0x4E00 + number) for number in range(20))
    say(phrase[:19] + "。" + phrase * 10_000)
    asked = StopsAt(0)
    query = MessageQuery(phrase[1:] + phrase[:1] + "X")
    assert items(store.search_messages(query, cancel=asked)) == []
    assert -asked.count >= 200_000 // limits.PIECE_CODE_POINTS
    with pytest.raises(CancelledError):
        items(store.search_messages(query, cancel=StopsAt(-asked.count)))


def test_many_words_are_verified_in_the_text(say, ids):
    words = [f"word{number}" for number in range(100)]
    say(" ".join(words))
    say(" ".join(words[:90]))
    assert ids(" ".join(words)) == [1]


def test_repeated_characters_are_cheap_to_look_up(say, ids):
    say("啊" * 100_000)
    say("啊" * 10)
    assert ids("啊" * 2700) == [1]


# --- scope, session, order ---


def test_sessions_of_subagents_are_left_out_unless_asked_for(store, say, ids):
    for number, title in enumerate(("subagent: x", "Subagent: x", "subagent:x", " subagent: x")):
        store.create_session(f"t{number}", title)
        say("needle", session_id=f"t{number}")
    assert sorted(ids("needle")) == [2, 3, 4]
    assert sorted(ids("needle", scope="all")) == [1, 2, 3, 4]
    store.update_session("t0", "no more")
    assert sorted(ids("needle")) == [1, 2, 3, 4]


def test_noise_of_subagents_never_crowds_out_a_conversation(store, say, ids):
    store.create_session("noise", "subagent: loud")
    for _ in range(30):
        say("needle needle needle", session_id="noise")
    say("one needle in a long hay stack of many other words")
    assert ids("needle") == [31]


def test_one_session_can_be_searched_alone(store, say, ids):
    store.create_session("other", "t")
    say("needle")
    say("needle", session_id="other")
    assert ids("needle", session_id="other") == [2]
    assert ids("needle", session_id="unknown") == []


def test_better_matches_come_first(say, ids):
    say("apple " + "filler " * 60)
    say("apple apple apple")
    say("apple and four more words")
    for _ in range(10):
        say("something else")
    assert ids("apple") == [2, 3, 1]


def test_near_ties_are_newest_first_before_the_limit(say, store, search):
    for number in range(30):
        say(f"tie breaker number{number}")
    assert [result.message.id for result in search("breaker", limit=5)][:5] == [30, 29, 28, 27, 26]


def test_ties_of_time_are_ordered_by_id_descending(say, ids, sql):
    for _ in range(5):
        say("same words")
    sql("UPDATE messages SET created_at = 7 WHERE id <> 2")
    sql("UPDATE messages SET created_at = 8 WHERE id = 2")
    assert ids("same") == [2, 5, 4, 3, 1]


def test_one_more_than_the_limit_tells_that_there_is_more(say, search):
    for _ in range(7):
        say("needle")
    assert [len(search("needle", limit=limit)) for limit in (1, 6, 7, 8)] == [2, 7, 7, 7]


def test_pages_are_exact_while_nothing_is_written(store, say):
    for number in range(60):
        say("common " * (number % 5 + 1) + "filler " * (number % 11))
    query = MessageQuery("common")
    whole = list(store.search_messages(query, limit=1000))
    assert len(whole) == 60
    for place, placed in enumerate(whole):
        rest = list(store.search_messages(query, placed.cursor, 1000))
        assert rest == whole[place + 1 :]


def test_messages_that_came_after_the_first_response_are_left_out(store, say, items):
    for number in range(10):
        say(f"needle {number}")
    first = next(store.search_messages(MessageQuery("needle")))
    say("needle " * 5)
    rest = items(store.search_messages(MessageQuery("needle"), first.cursor, 1000))
    assert sorted([first.item.message.id, *(r.message.id for r in rest)]) == list(range(1, 11))


def test_the_place_is_kept_though_others_come_before_it_and_scores_shift(store, say, items):
    for number in range(20):
        say("needle " * (number % 4 + 1) + f"{number} " * (number % 3))
    query = MessageQuery("needle")
    whole = list(store.search_messages(query, limit=1000))
    order = [placed.item.message.id for placed in whole]
    for _ in range(30):
        say("needle and other words")
    for place in (0, 7, 18):
        rest = items(store.search_messages(query, whole[place].cursor, 5))
        assert [result.message.id for result in rest] == order[place + 1 : place + 7]


def test_a_place_that_has_moved_down_is_found_there(store, say, items):
    for _ in range(20):
        say("needle")
    cursor = SearchCursor(moment=20, count=3, id=14)
    rest = items(store.search_messages(MessageQuery("needle"), cursor, 4))
    assert [result.message.id for result in rest] == [13, 12, 11, 10, 9]


def test_a_place_whose_match_is_gone_is_behind_the_one_before_it(store, say, items):
    store.create_session("gone", "t")
    for number in range(6):
        say("needle", session_id="gone" if number in (3, 4) else "s1")
    whole = list(store.search_messages(MessageQuery("needle")))
    assert [placed.item.message.id for placed in whole] == [6, 5, 4, 3, 2, 1]
    store.delete_session("gone")
    rest = list(store.search_messages(MessageQuery("needle"), whole[2].cursor))
    assert [placed.item.message.id for placed in rest] == [3, 2, 1]
    rest = items(store.search_messages(MessageQuery("needle"), rest[0].cursor))
    assert [result.message.id for result in rest] == [2, 1]


def test_a_place_of_which_nothing_is_left_is_known_by_its_number(store, say, items):
    store.create_session("gone", "t")
    for number in range(6):
        say("needle", session_id="gone" if number == 3 else "s1")
    store.delete_session("gone")
    cursor = SearchCursor(moment=6, count=3, id=4)
    rest = items(store.search_messages(MessageQuery("needle"), cursor))
    assert [result.message.id for result in rest] == [2, 1]


def test_what_is_deleted_before_it_is_loaded_leaves_its_place_to_the_next(store, say, monkeypatch):
    monkeypatch.setattr(message_search, "_FIRST_PAGE", 1)
    monkeypatch.setattr(message_search, "_PAGE", 2)
    store.create_session("gone", "t")
    for number in range(40):
        say("needle", session_id="gone" if number % 4 == 1 else "s1")
    query, kept = MessageQuery("needle"), [n for n in range(40, 0, -1) if n % 4 != 2]
    for place in (None, next(store.search_messages(query)).cursor):
        listing = store.search_messages(query, place, 20)
        first = next(listing)
        store.delete_session("gone")
        rest = list(listing)
        given = [placed.item.message.id for placed in (first, *rest)]
        start = 0 if place is None else 1
        assert given == kept[start : start + 21]
        again = store.search_messages(query, rest[-2].cursor)
        assert next(again).item.message.id == given[-1]
        store.create_session("gone", "t")
        for _ in range(3):
            say("other words", session_id="gone")


def test_a_search_that_lost_nothing_ranks_once(store, say, monkeypatch):
    for _ in range(30):
        say("needle")
    calls, matches = [], ranked.matches

    def counted(*arguments):
        calls.append(arguments)
        return matches(*arguments)

    monkeypatch.setattr(ranked, "matches", counted)
    for limit, count in ((20, 21), (29, 30), (30, 30), (500, 30)):
        calls.clear()
        assert len(list(store.search_messages(MessageQuery("needle"), limit=limit))) == count
        assert len(calls) == 1


def test_a_session_deleted_between_pages_is_left_out(store, say, items, monkeypatch):
    monkeypatch.setattr(message_search, "_FIRST_PAGE", 1)
    store.create_session("gone", "t")
    for number in range(6):
        say("needle", session_id="gone" if number % 2 else "s1")
    listing = store.search_messages(MessageQuery("needle"))
    next(listing)
    store.delete_session("gone")
    assert [result.message.id for result in items(listing)] == [5, 3, 1]


# --- windows ---


def window_ids(result):
    return [message.id for message in result.window]


def test_the_window_is_three_each_side_of_any_role_clipped_at_the_ends(store, say, search):
    store.create_session("other", "t")
    roles = ("user", "assistant", "tool", "system")
    for number in range(12):
        # Ids 1, 4, 7 … belong to another session.
        session = "other" if number % 3 == 0 else "s1"
        say(f"needle{number}", role=roles[number % 4], session_id=session)
    windows = {
        number: [window_ids(r) for r in search(f"needle{number}")] for number in (1, 4, 5, 8)
    }
    assert windows == {
        1: [[2, 3, 5, 6]],
        4: [[2, 3, 5, 6, 8, 9]],
        5: [[2, 3, 5, 6, 8, 9, 11]],
        8: [[5, 6, 8, 9, 11, 12]],
    }


@pytest.mark.parametrize(
    ("window", "expected"), [(0, []), (1, [9, 10, 11]), (20, list(range(1, 21)))]
)
def test_the_window_has_the_asked_size(say, search, window, expected):
    for number in range(20):
        say(f"needle{number}")
    (result,) = search("needle9", window=window)
    assert window_ids(result) == expected


def test_all_windows_of_a_page_come_from_one_query(store, say, search, path, monkeypatch):
    for _ in range(9):
        say("needle")
    statements = []

    def traced():
        connection = open_reader(path, DEFAULT_SETTINGS)
        connection.exec_trace = lambda _cursor, sql, _bindings: statements.append(sql) or True
        return connection

    monkeypatch.setattr(store._database.readers, "_connect", traced)
    assert len(search("needle")) == 9
    assert sum("json_each" in sql for sql in statements) == 1


def test_texts_of_a_window_are_cut_and_the_match_is_whole(say, search):
    long = "é" * 9000
    calls = (ToolCall("c", "function", "f", "a" * 20_000, (("secret", "1"),)),)
    say(long + " needle", images=("data:x", "data:y"))
    say("next", "assistant", tool_calls=calls)
    say("x\0" * 10_000, "tool")
    (result,) = search("needle")
    assert (result.message.content, result.message.truncated) == (long + " needle", False)
    first, second, third = result.window
    assert (first.content, first.truncated, first.images) == ("é" * 8192, True, ("", ""))
    assert second.tool_calls == (ToolCall("c", "function", "f", "a" * 16_384),)
    assert (second.content, second.truncated) == ("next", True)
    assert (third.content, third.truncated) == ("x\0" * 8192, True)


def test_texts_that_fit_a_window_are_not_called_truncated(say, search):
    exact = "a" * (limits.WINDOW_TEXT_BYTES - 7) + " needle"
    call = ToolCall("c", "function", "f", "b" * limits.WINDOW_TEXT_BYTES, (("secret", "1"),))
    say(exact, tool_calls=(call,))
    (result,) = search("needle")
    (message,) = result.window
    assert (message.content, message.truncated) == (exact, False)
    assert message.tool_calls == (ToolCall("c", "function", "f", call.arguments),)
    assert result.message.tool_calls == (call,)


def test_all_texts_of_a_window_message_are_bounded_in_sum(say, search):
    say("needle", tool_calls=tuple(ToolCall(str(n), "", "", "x" * 10_000) for n in range(50)))
    (result,) = search("needle")
    (message,) = result.window
    total = sum(len(call.arguments) + len(call.id) + 64 for call in message.tool_calls)
    assert total + len(message.content) == limits.WINDOW_MESSAGE_BYTES
    assert message.truncated
    assert len(result.message.tool_calls) == 50


def test_large_matches_are_read_a_few_at_once(store, say, search, monkeypatch):
    monkeypatch.setattr(limits, "READ_BATCH_BYTES", 1000)
    for _ in range(5):
        say("needle " * 100)
    loaded = []
    page = message_search._page

    def counted(*args):
        results, taken = page(*args)
        loaded.append(len(results))
        return results, taken

    monkeypatch.setattr(message_search, "_page", counted)
    assert len(search("needle")) == 5
    assert loaded == [2, 2, 1]
