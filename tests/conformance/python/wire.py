"""RPCs with grpcio, over the connection that flue_grpc.client opens."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
from google.protobuf import descriptor_pool, json_format, message_factory
from steps import CANCEL, CallFailedError

from flue.agentindex.v1 import agent_index_pb2
from flue.store.v1 import store_pb2
from flue_grpc.client import Target
from flue_grpc.client.channel import open_channel
from flue_grpc.client.failures import from_rpc_error

if TYPE_CHECKING:
    import argparse
    from collections.abc import Generator

SERVICES = {
    "Store": store_pb2.DESCRIPTOR.services_by_name["Store"],
    "AgentIndex": agent_index_pb2.DESCRIPTOR.services_by_name["AgentIndex"],
}


class GrpcioCaller:
    """Makes every call with grpcio."""

    def __init__(self, options: argparse.Namespace) -> None:
        ca = Path(options.ca).read_bytes() if options.ca else None
        self._channel = open_channel(Target(address=options.address, root_certificates=ca))
        self._pool = descriptor_pool.Default()

    def obstacle(self, steps: Any) -> str:
        """Run everything."""
        del steps
        return ""

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()

    def call(self, method: str, request: Any, token: str, seconds: float) -> Any:
        """Make a unary call."""
        rpc = self._rpc(self._channel.unary_unary, method)
        try:
            response = rpc(self._message(method, request), timeout=seconds, metadata=bearer(token))
        except grpc.RpcError as error:
            raise failed(error) from error
        return json_format.MessageToDict(response)

    def stream(
        self, method: str, request: Any, token: str, seconds: float
    ) -> Generator[Any, Any, None]:
        """Make a streaming call; closing the iterator, or sending CANCEL, cancels it."""
        rpc = self._rpc(self._channel.unary_stream, method)
        call = rpc(self._message(method, request), timeout=seconds, metadata=bearer(token))
        try:
            for response in call:
                if (yield json_format.MessageToDict(response)) is CANCEL:
                    call.cancel()
        except grpc.RpcError as error:
            raise failed(error) from error
        finally:
            call.cancel()

    def _rpc(self, kind: Any, method: str) -> Any:
        service, name = method.split("/")
        output = SERVICES[service].methods_by_name[name].output_type
        return kind(
            f"/{SERVICES[service].full_name}/{name}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=message_factory.GetMessageClass(output).FromString,
        )

    def _message(self, method: str, request: Any) -> Any:
        service, name = method.split("/")
        input_type = SERVICES[service].methods_by_name[name].input_type
        return json_format.ParseDict(request, message_factory.GetMessageClass(input_type)())


def bearer(token: str) -> list[tuple[str, str]]:
    """Carry ``token`` in the metadata, nothing without one."""
    return [("authorization", f"Bearer {token}")] if token else []


def failed(error: grpc.RpcError) -> CallFailedError:
    """Say in the words of the scenarios what failed."""
    known = from_rpc_error(error)
    return CallFailedError(
        {
            "code": known.code.name,
            "reason": known.reason,
            "metadata": dict(known.metadata),
            "message": known.message,
        }
    )
