"""What a call leaves behind (contract rule 4)."""

from __future__ import annotations

import gc
import weakref

import pytest

from flue.store.v1 import store_pb2
from flue_grpc.errors import CancelledError, DatabaseIoError
from flue_grpc.rpc.calls import Kind, Method
from flue_grpc.rpc.interceptors.chain import request_to_response, request_to_stream
from flue_grpc.rpc.interceptors.courtesy import Courtesy
from flue_grpc.rpc.interceptors.errors import Errors


class Context:
    """Aborts as grpcio does, by an exception without a class of its own."""

    def abort(self, code, details):
        raise Exception  # noqa: TRY002 - grpcio's own way

    abort_with_status = abort

    def code(self):
        return None

    def trailing_metadata(self):
        return ()

    def set_trailing_metadata(self, metadata):
        pass

    def add_callback(self, callback):
        return True


class Large:
    """Something to be told when it is gone."""


@pytest.fixture
def uncollected():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def method(kind):
    return Method("/s/M", kind, store_pb2.ListMessagesRequest.FromString, lambda response: b"")


@pytest.mark.parametrize(
    "error", [CancelledError("gone"), DatabaseIoError("broken"), ValueError("?")]
)
@pytest.mark.parametrize("sent", [0, 1])
def test_a_stream_that_fails_holds_nothing(uncollected, error, sent):
    held = []

    def behaviour(request, context):
        large = Large()
        held.append(weakref.ref(large))
        yield from [large] * sent
        raise type(error)(str(error))

    chain = (Errors(lambda error: None), Courtesy())
    run = request_to_stream(method(Kind.FINITE), behaviour, chain)(b"", Context())
    assert [next(run) for _ in range(sent)] == [b""] * sent
    with pytest.raises(Exception):  # noqa: B017, PT011 - see Context.abort
        next(run)
    del run
    assert held[0]() is None


def test_a_call_that_fails_holds_nothing(uncollected):
    held = []

    def behaviour(request, context):
        large = Large()
        held.append(weakref.ref(large))
        raise DatabaseIoError("broken")

    run = request_to_response(method(Kind.UNARY), behaviour, (Errors(lambda error: None),))
    with pytest.raises(Exception):  # noqa: B017, PT011 - see Context.abort
        run(b"", Context())
    assert held[0]() is None


def test_a_stream_that_is_left_holds_nothing(uncollected):
    held = []

    def behaviour(request, context):
        large = Large()
        held.append(weakref.ref(large))
        while True:
            yield large

    chain = (Errors(lambda error: None), Courtesy())
    run = request_to_stream(method(Kind.FINITE), behaviour, chain)(b"", Context())
    next(run)
    del run
    assert held[0]() is None
