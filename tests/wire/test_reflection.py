from __future__ import annotations

import json
import subprocess
import threading
from contextlib import suppress

import grpc
import pytest
from google.protobuf import descriptor_pb2
from grpc_reflection.v1alpha import reflection_pb2

from flue.agentindex.v1 import agent_index_pb2
from flue.store.v1 import store_pb2
from flue_grpc import limits
from flue_grpc.commands.paste import lines_to_paste
from flue_grpc.config import load
from flue_grpc.rpc.reflection import NAMES
from tests import tools
from tests.wire import homes

SETTINGS = load({}, {"HOME": "/nowhere"}).settings
SERVICES = [
    "flue.agentindex.v1.AgentIndex",
    "flue.store.v1.Store",
    "grpc.health.v1.Health",
    "grpc.reflection.v1alpha.ServerReflection",
]


def ask(flue, name, *requests):
    call = flue.channel.stream_stream(
        f"/{name}/ServerReflectionInfo",
        reflection_pb2.ServerReflectionRequest.SerializeToString,
        reflection_pb2.ServerReflectionResponse.FromString,
    )
    return list(call(iter(requests), timeout=20))


@pytest.mark.parametrize("name", NAMES)
def test_both_versions_list_every_service(flue, name):
    [answer] = ask(flue, name, reflection_pb2.ServerReflectionRequest(list_services=""))
    assert [each.name for each in answer.list_services_response.service] == SERVICES


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_is_described_with_all_that_it_needs(flue, name):
    request = reflection_pb2.ServerReflectionRequest(file_containing_symbol=name)
    [answer] = ask(flue, NAMES[1], request)
    files = {}
    for data in answer.file_descriptor_response.file_descriptor_proto:
        file = descriptor_pb2.FileDescriptorProto.FromString(data)
        files[file.name] = file
    needed = {needed for file in files.values() for needed in file.dependency}
    assert needed <= set(files)
    assert any(
        f"{file.package}.{service.name}" == name
        for file in files.values()
        for service in file.service
    )


@pytest.mark.parametrize("module", [store_pb2, agent_index_pb2])
def test_what_is_described_is_the_contract(flue, module):
    request = reflection_pb2.ServerReflectionRequest(file_by_filename=module.DESCRIPTOR.name)
    [answer] = ask(flue, NAMES[1], request)
    described = [
        descriptor_pb2.FileDescriptorProto.FromString(data)
        for data in answer.file_descriptor_response.file_descriptor_proto
    ]
    contract = descriptor_pb2.FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(contract)
    assert contract in described


@pytest.mark.parametrize(
    "module_and_service", [(store_pb2, "Store"), (agent_index_pb2, "AgentIndex")]
)
def test_every_method_of_the_contract_is_served(flue, module_and_service):
    module, service = module_and_service
    descriptor = module.DESCRIPTOR.services_by_name[service]
    for method in descriptor.methods:
        call = flue.channel.unary_stream(f"/{descriptor.full_name}/{method.name}")
        ended = call(b"", timeout=20)
        with suppress(grpc.RpcError, StopIteration):
            next(ended)
        ended.cancel()
        assert ended.details() != "Method not found!"


def test_the_line_for_buf_that_the_server_prints_works(flue):
    homes.write_session(flue.home, 0)
    flue.swept()
    _, line = lines_to_paste(flue.server.addresses[0], SETTINGS)
    shown = subprocess.run(
        line.replace("buf ", f"{tools.packaged('buf')} ", 1),
        shell=True,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert shown.stderr == ""
    assert json.loads(shown.stdout)["summaries"][0]["title"] == "question 0"


def test_the_line_for_grpcurl_that_the_server_prints_works(flue):
    homes.write_session(flue.home, 0)
    flue.swept()
    line, _ = lines_to_paste(flue.server.addresses[0], SETTINGS)
    shown = subprocess.run(
        line.replace("grpcurl ", f"{tools.grpcurl()} ", 1),
        shell=True,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert json.loads(shown.stdout)["summaries"][0]["title"] == "question 0"


def test_idle_reflection_streams_have_a_budget_of_their_own(flue):
    done = threading.Event()

    def requests():
        yield reflection_pb2.ServerReflectionRequest(list_services="")
        done.wait(20)

    method = f"/{NAMES[0]}/ServerReflectionInfo"
    stub = flue.channel.stream_stream(
        method,
        reflection_pb2.ServerReflectionRequest.SerializeToString,
        reflection_pb2.ServerReflectionResponse.FromString,
    )
    calls = [stub(requests()) for _ in range(limits.REFLECTION_STREAMS)]
    for call in calls:
        next(call)
    with pytest.raises(grpc.RpcError) as caught:
        list(stub(requests()))
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    list(flue.store.ListSessions(store_pb2.ListSessionsRequest()))
    done.set()
