from __future__ import annotations

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from flue.store.v1 import store_pb2
from flue_grpc import errors
from flue_grpc.rpc import status

SECRET = "secret /home/me/.claude/projects/x.jsonl"


def outcome(call):
    """The code, message and details that a client sees."""
    with pytest.raises(grpc.RpcError) as caught:
        call()
    error = caught.value
    rich = rpc_status.from_call(error)
    found = {}
    for packed in () if rich is None else rich.details:
        detail = getattr(error_details_pb2, packed.TypeName().rpartition(".")[2])()
        assert packed.Unpack(detail)
        found[type(detail).__name__] = detail
    if rich is not None:
        assert (rich.code, rich.message) == (error.code().value[0], error.details())
    return error.code(), error.details(), found


@pytest.mark.parametrize("kind", status.TABLE)
@pytest.mark.parametrize("streams", [False, True])
def test_every_error_of_the_domain_arrives_as_the_table_says(server, kind, streams):
    def fails(request, context):
        raise kind("a fixed sentence", metadata={"part": "v"})

    def fails_late(request, context):
        yield store_pb2.ListMessagesResponse()
        raise kind("a fixed sentence", metadata={"part": "v"})

    server.probe.behaviours["fail"] = fails_late if streams else fails
    call = (lambda: list(server.list("fail"))) if streams else (lambda: server.get("fail"))
    code, message, details = outcome(call)
    rule = status.TABLE[kind]
    assert code is rule.code
    assert message == "a fixed sentence"
    assert ("ErrorInfo" in details) == bool(rule.reason)
    assert ("RetryInfo" in details) == (rule.retry is not None)
    if rule.reason:
        info = details["ErrorInfo"]
        assert (info.reason, info.domain) == (rule.reason, "flue-grpc")
        assert dict(info.metadata) == {"part": "v"}
    if rule.field:
        assert details["BadRequest"].field_violations[0].field == rule.field
    assert [type(error) for error in server.errors] == [kind]


@pytest.mark.parametrize(
    "error",
    [
        ValueError(SECRET),
        KeyError(SECRET),
        RecursionError(SECRET),
        MemoryError(SECRET),
        OSError(2, SECRET, SECRET),
        grpc.FutureTimeoutError(SECRET),
        errors.ConfigError(SECRET),
        errors.AlreadyRunningError(SECRET),
        errors.FlueError(SECRET),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("streams", [False, True])
def test_what_nobody_foresaw_leaves_as_an_id_that_the_log_has(server, caplog, error, streams):
    def fails(request, context):
        raise error

    def fails_late(request, context):
        yield store_pb2.ListMessagesResponse()
        raise error

    server.probe.behaviours["fail"] = fails_late if streams else fails
    call = (lambda: list(server.list("fail"))) if streams else (lambda: server.get("fail"))
    with caplog.at_level("INFO"):
        code, message, details = outcome(call)
    assert code is grpc.StatusCode.INTERNAL
    said, _, call_id = message.rpartition(" ")
    assert said == "internal error; the server's log has it under"
    assert len(call_id) == 16
    assert details == {}
    [logged] = [record for record in caplog.records if record.name == "flue_grpc.errors"]
    assert logged.call == call_id
    assert type(error).__name__ in logged.getMessage()
    assert "fails" in logged.getMessage()
    assert "secret" not in caplog.text


def test_the_text_of_an_exception_is_logged_only_for_debugging(server, caplog):
    def fails(request, context):
        raise ValueError(SECRET)

    server.probe.behaviours["fail"] = fails
    with caplog.at_level("DEBUG"):
        outcome(lambda: server.get("fail"))
    assert SECRET in caplog.text


def test_a_handler_may_abort_by_itself(server, caplog):
    def aborts(request, context):
        context.abort(grpc.StatusCode.UNIMPLEMENTED, "not served")

    def aborts_late(request, context):
        yield store_pb2.ListMessagesResponse()
        aborts(request, context)

    server.probe.behaviours["abort"] = aborts
    code, message, _ = outcome(lambda: server.get("abort"))
    assert (code, message) == (grpc.StatusCode.UNIMPLEMENTED, "not served")
    server.probe.behaviours["abort"] = aborts_late
    code, message, _ = outcome(lambda: list(server.list("abort")))
    assert (code, message) == (grpc.StatusCode.UNIMPLEMENTED, "not served")
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


def test_a_response_that_cannot_be_serialised_is_an_internal_error(server):
    server.probe.behaviours["bad"] = lambda request, context: "no message"
    code, message, _ = outcome(lambda: server.get("bad"))
    assert code is grpc.StatusCode.INTERNAL
    assert message.startswith("internal error; ")


def test_each_call_is_logged_with_its_end_and_without_content(server, caplog, wait_until):
    def fails(request, context):
        raise errors.SessionNotFoundError("no such session")

    server.probe.behaviours |= {"fails": fails, "hold": server.probe.hold_stream}

    def records():
        return [record for record in caplog.records if record.name == "flue_grpc.access"]

    with caplog.at_level("INFO"):
        server.get("ok")
        outcome(lambda: server.get("fails"))
        call = server.list("hold")
        next(call)
        call.cancel()
        wait_until(lambda: len(records()) == 3)
    ok, failed, cancelled = sorted(records(), key=lambda record: record.created)
    assert (ok.method, ok.code) == ("/flue.store.v1.Store/GetSession", "OK")
    assert (ok.received_bytes, ok.sent_bytes, ok.responses) == (4, 6, 1)
    assert ok.peer == "unix:"
    assert ok.duration_ms >= 0
    assert (failed.code, failed.responses) == ("NOT_FOUND", 0)
    assert (cancelled.code, cancelled.responses) == ("CANCELLED", 1)
    assert len({record.call for record in (ok, failed, cancelled)}) == 3
