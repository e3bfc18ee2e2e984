from __future__ import annotations

import pytest

from flue.agentindex.v1 import agent_index_pb2
from flue.store.v1 import store_pb2
from flue_grpc.errors import ReadOnlyCredentialsError
from flue_grpc.security.roles import READ_METHODS, Principal, Role, check_allowed, is_open

READER = Principal("viewer", Role.READ)
OWNER = Principal("agent", Role.FULL)
WRITES = {
    "/flue.store.v1.Store/CreateSession",
    "/flue.store.v1.Store/UpdateSession",
    "/flue.store.v1.Store/DeleteSession",
    "/flue.store.v1.Store/AppendMessage",
    "/flue.store.v1.Store/AppendMessages",
    "/flue.store.v1.Store/WriteMemoryEntry",
    "/flue.store.v1.Store/UpdateMemoryEntry",
    "/flue.store.v1.Store/DeleteMemoryEntry",
}
REFLECTION = {
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
}


def contract_methods():
    for file in (store_pb2, agent_index_pb2):
        for service in file.DESCRIPTOR.services_by_name.values():
            for method in service.methods:
                yield f"/{service.full_name}/{method.name}"


def test_every_method_of_the_contract_is_a_read_or_a_write():
    assert set(contract_methods()) == (READ_METHODS - REFLECTION) | WRITES
    assert not READ_METHODS & WRITES


@pytest.mark.parametrize("method", sorted(READ_METHODS))
def test_a_reader_may_read(method):
    check_allowed(READER, method)


@pytest.mark.parametrize(
    "method", [*sorted(WRITES), "/grpc.channelz.v1.Channelz/GetServers", "/flue.store.v1.Store/New"]
)
def test_a_reader_may_do_nothing_else_and_an_owner_everything(method):
    with pytest.raises(ReadOnlyCredentialsError):
        check_allowed(READER, method)
    check_allowed(OWNER, method)


def test_health_alone_is_open():
    assert is_open("/grpc.health.v1.Health/Check")
    assert is_open("/grpc.health.v1.Health/Watch")
    assert not any(is_open(method) for method in (*READ_METHODS, *WRITES))
    assert not is_open("/grpc.health.v1.HealthX/Check")
