from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flue_grpc.cancel import NEVER
from flue_grpc.errors import (
    BadBatchError,
    BadRoleError,
    SessionNotFoundError,
    ValueTooLargeError,
)
from flue_grpc.store import message_size, messages
from flue_grpc.store.messages import MessageCursor, is_searchable
from flue_grpc.store.store import Store
from flue_grpc.store.values import COMPACTION_MARKER, Draft, Message, ToolCall

CALL = ToolCall(
    "call_1",
    "function",
    "write",
    '{"b": 1,  "a": "\\u00e9<&>"}\n',
    (("extra_content", '{"google": {"thought_signature": "AbC=="}}'), ("function.strict", "true")),
)
TRAIL = (
    Draft("system", "be brief"),
    Draft("user", "look", images=("data:image/png;base64,iVBOR", "", "https://x/y?a=1&b=2")),
    Draft("assistant", "", provider="openai", tool_calls=(CALL, ToolCall("c2", "", "", ""))),
    Draft("tool", "a\0b\n\r\u2028 ünï 数据 𠮷", tool_call_id="call_1", name="write"),
    Draft("system", "summary", name=COMPACTION_MARKER),
)


def test_a_whole_conversation_comes_back_as_it_was_given(store, session_id, items):
    made = [store.append_message(session_id, draft) for draft in TRAIL]
    assert items(store.list_messages(session_id)) == made
    for number, (message, draft) in enumerate(zip(made, TRAIL, strict=True), 1):
        assert message == Message(
            number,
            session_id,
            draft.role,
            draft.content,
            draft.provider,
            draft.tool_calls,
            draft.tool_call_id,
            draft.name,
            draft.images,
            message.created_at,
        )


def test_an_append_touches_its_session_at_the_message_s_own_time(store, session_id):
    message = store.append_message(session_id, Draft("user", "x"))
    assert store.get_session(session_id).updated_at == message.created_at
    messages = store.append_messages(session_id, [Draft("user", "y"), Draft("user", "z")])
    assert store.get_session(session_id).updated_at == messages[-1].created_at


@pytest.mark.parametrize("role", ["", "User", "developer", "user ", "function"])
def test_other_roles_are_refused(store, session_id, role):
    with pytest.raises(BadRoleError) as caught:
        store.append_message(session_id, Draft(role, "x"))
    assert caught.value.field == "role"


def test_an_unknown_session_gets_no_orphan(store, sql):
    with pytest.raises(SessionNotFoundError):
        store.append_message("nobody", Draft("user", "x"))
    assert sql(
        "SELECT (SELECT count(*) FROM messages), (SELECT count(*) FROM message_index_docsize)"
    ) == [(0, 0)]


def test_a_batch_is_stored_whole_in_order(store, session_id, items):
    made = store.append_messages(session_id, TRAIL)
    assert [message.id for message in made] == [1, 2, 3, 4, 5]
    assert items(store.list_messages(session_id)) == list(made)
    assert len({message.created_at for message in made}) == 5


def test_a_batch_with_one_bad_message_stores_none(store, session_id, items):
    before = store.get_session(session_id)
    with pytest.raises(BadRoleError):
        store.append_messages(session_id, [Draft("user", "good"), Draft("bad", "x")])
    assert items(store.list_messages(session_id)) == []
    assert store.get_session(session_id) == before


@pytest.mark.parametrize("count", [0, 1001])
def test_a_batch_has_1_to_1000_messages(store, session_id, count):
    with pytest.raises(BadBatchError):
        store.append_messages(session_id, [Draft("user", "x")] * count)


def test_a_batch_of_1000_messages_is_one_commit(store, session_id):
    before = store.commits
    assert len(store.append_messages(session_id, [Draft("user", "x")] * 1000)) == 1000
    assert store.commits == before + 1


@pytest.mark.parametrize(
    "draft",
    [
        Draft("user", "x" * 33_554_432),
        Draft("user", "é" * 16_777_216),
        Draft("user", images=("i" * 20_000_000,) * 2),
        Draft("assistant", tool_calls=(ToolCall("", "", "", "a" * 33_554_432),)),
        Draft("assistant", tool_calls=(ToolCall("", "", "", "", (("x", "a" * 33_554_432),)),)),
    ],
    ids=["ascii", "two bytes", "images", "arguments", "extra"],
)
def test_a_message_over_32_mib_is_refused(store, session_id, draft):
    with pytest.raises(ValueTooLargeError) as caught:
        store.append_message(session_id, draft)
    assert caught.value.metadata == {"limit": "33554432"}


def test_the_limit_is_32_mib_to_the_byte():
    room = 33_554_432 - message_size.ADDED - message_size.draft_size(Draft("user", "x" * 2**24))
    messages.check_size(Draft("user", "x" * (2**24 + room)))
    with pytest.raises(ValueTooLargeError):
        messages.check_size(Draft("user", "x" * (2**24 + room + 1)))


def test_many_small_things_count_for_what_they_take():
    messages.check_size(Draft("user", images=("",) * 6_000_000))
    messages.check_size(Draft("assistant", tool_calls=(ToolCall("", "", "", ""),) * 1_000_000))
    with pytest.raises(ValueTooLargeError) as caught:
        messages.check_size(Draft("assistant", tool_calls=(ToolCall("", "", "", ""),) * 1_000_001))
    assert caught.value.metadata == {"limit": "1000000"}


def test_a_message_of_nearly_32_mib_goes_in_and_out(store, session_id, items):
    image = "data:image/png;base64," + "A" * 33_553_500
    made = store.append_message(session_id, Draft("user", "big", images=(image,)))
    (read,) = items(store.list_messages(session_id))
    assert read == made
    (light,) = items(store.list_messages(session_id, images="omitted"))
    assert (light.content, light.images) == ("big", ("",))


def test_omitted_images_keep_their_number(store, session_id, items):
    store.append_message(session_id, Draft("user", "x", images=("a", "b", "")))
    store.append_message(session_id, Draft("user", "y"))
    listed = items(store.list_messages(session_id, images="omitted"))
    assert [message.images for message in listed] == [("", "", ""), ()]


def test_a_list_begins_after_any_id(store, session_id, items):
    other = store.create_session("other", "t").id
    for number in range(9):
        store.append_message(session_id if number % 2 else other, Draft("user", str(number)))
    listed = [m.id for m in items(store.list_messages(session_id, MessageCursor(4)))]
    assert listed == [6, 8]
    assert items(store.list_messages(session_id, MessageCursor(8))) == []
    assert len(items(store.list_messages(session_id, MessageCursor(-5)))) == 4


def test_a_list_is_exact_while_messages_are_appended(store, session_id, monkeypatch):
    monkeypatch.setattr("flue_grpc.limits.READ_BATCH_ROWS", 3)
    for number in range(7):
        store.append_message(session_id, Draft("user", str(number)))
    seen = []
    created_at = store.get_session(session_id).created_at
    for placed in store.list_messages(session_id):
        seen.append(placed.item.id)
        assert placed.cursor == MessageCursor(placed.item.id, created_at)
        if placed.item.id < 10:
            store.append_message(session_id, Draft("user", "more"))
    assert seen == list(range(1, len(seen) + 1))
    assert len(seen) >= 10


def test_a_list_of_large_messages_reads_few_at_once(store, session_id, monkeypatch):
    monkeypatch.setattr("flue_grpc.limits.READ_BATCH_BYTES", 1000)
    for _ in range(6):
        store.append_message(session_id, Draft("user", "x" * 600))
    batches = []
    from flue_grpc.store import messages

    read = messages.read_batch

    def counted(*args):
        rows, is_last = read(*args)
        batches.append(len(rows))
        return rows, is_last

    monkeypatch.setattr(messages, "read_batch", counted)
    assert len(list(store.list_messages(session_id))) == 6
    assert batches == [2, 2, 2, 0]


def test_a_list_whose_session_is_deleted_meanwhile_says_so(store, session_id, monkeypatch):
    monkeypatch.setattr("flue_grpc.limits.READ_BATCH_ROWS", 2)
    for _ in range(5):
        store.append_message(session_id, Draft("user", "x"))
    listing = store.list_messages(session_id)
    next(listing)
    store.delete_session(session_id)
    with pytest.raises(SessionNotFoundError):
        list(listing)


def made_anew(store, session_id):
    """Delete a session, make one of its id, and say something in it."""
    store.delete_session(session_id)
    store.create_session(session_id, "another")
    return store.append_message(session_id, Draft("user", "of the other one"))


def test_a_list_never_goes_on_in_another_session_of_the_same_id(store, session_id, monkeypatch):
    monkeypatch.setattr("flue_grpc.limits.READ_BATCH_ROWS", 2)
    for _ in range(3):
        store.append_message(session_id, Draft("user", "x"))
    listing = store.list_messages(session_id)
    first = next(listing)
    new = made_anew(store, session_id)
    next(listing)  # was read before
    with pytest.raises(SessionNotFoundError):
        next(listing)
    with pytest.raises(SessionNotFoundError):
        next(store.list_messages(session_id, first.cursor))
    assert [p.item for p in store.list_messages(session_id, MessageCursor(first.item.id))] == [new]


def test_a_follow_never_goes_on_in_another_session_of_the_same_id(store, session_id):
    follow = store.follow(session_id, MessageCursor(0), "whole")
    assert list(follow.news(NEVER)) == []
    place = follow.place
    assert place == MessageCursor(0, store.get_session(session_id).created_at)
    made_anew(store, session_id)
    follow._subscription.is_deleted = False  # as if it had not been told yet
    for each in (follow, store.follow(session_id, place, "whole")):
        with pytest.raises(SessionNotFoundError):
            list(each.news(NEVER))
        each.close()


def test_an_abandoned_list_holds_no_transaction(store, session_id, path, monkeypatch):
    monkeypatch.setattr("flue_grpc.limits.READ_BATCH_ROWS", 2)
    for _ in range(5):
        store.append_message(session_id, Draft("user", "x"))
    listing = store.list_messages(session_id)
    next(listing)
    import apsw

    outside = apsw.Connection(str(path))
    outside.execute("SELECT count(*) FROM sessions").fetchall()
    # Only a log that no reader is in can be cut to nothing.
    assert outside.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE) == (0, 0)
    outside.close()


@pytest.mark.parametrize(
    ("draft", "expected"),
    [
        (Draft("user", "x"), True),
        (Draft("assistant", "x"), True),
        (Draft("user", "x", name="a name"), True),
        (Draft("user", " "), True),
        (Draft("user", "\0"), True),
        (Draft("user", ""), False),
        (Draft("tool", "x"), False),
        (Draft("system", "x"), False),
        (Draft("user", "x", name=COMPACTION_MARKER), False),
        (Draft("assistant", "x", name=COMPACTION_MARKER), False),
        (Draft("user", "x", name=COMPACTION_MARKER + "\0"), True),
    ],
)
def test_the_column_and_the_code_agree_on_what_is_searchable(
    store, session_id, sql, draft, expected
):
    store.append_message(session_id, draft)
    assert is_searchable(draft.role, draft.content, draft.name) is expected
    assert sql("SELECT searchable FROM messages") == [(int(expected),)]
    assert sql("SELECT count(*) FROM message_index_docsize") == [(int(expected),)]


texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
calls = st.builds(
    ToolCall,
    texts,
    texts,
    texts,
    texts,
    st.dictionaries(texts, texts, max_size=3).map(lambda d: tuple(sorted(d.items()))),
)
drafts = st.builds(
    Draft,
    st.sampled_from(("user", "assistant", "system", "tool")),
    texts,
    texts,
    st.lists(calls, max_size=3).map(tuple),
    texts,
    texts,
    st.lists(texts, max_size=3).map(tuple),
)


@pytest.fixture(scope="module")
def open_store(tmp_path_factory):
    opened = Store.open(tmp_path_factory.mktemp("messages") / "data" / "store.db")
    opened.create_session("s", "t")
    yield opened
    opened.close()


@settings(max_examples=100, deadline=None)
@given(draft=drafts)
def test_any_message_round_trips(open_store, draft):
    made = open_store.append_message("s", draft)
    (read,) = [p.item for p in open_store.list_messages("s", MessageCursor(made.id - 1))]
    assert read == made
    assert Draft(*(getattr(read, name) for name in Draft.__struct_fields__)) == draft
