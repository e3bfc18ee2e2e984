"""Server reflection, under the names of both versions of its protocol.

The messages of ``v1`` and ``v1alpha`` are the same on the wire; grpcio has
only the older name, which today's tools ask for second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2

if TYPE_CHECKING:
    from flue_grpc.rpc.interceptors.chain import Registrar

NAMES: Final = (
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
)


def add_reflection(registrar: Registrar) -> None:
    """Describe every service that was registered before, and reflection itself.

    The newer name is not listed: there is no description of it to be had.
    """
    servicer = reflection.ReflectionServicer((*registrar.services, reflection.SERVICE_NAME))
    handler = grpc.stream_stream_rpc_method_handler(
        servicer.ServerReflectionInfo,
        reflection_pb2.ServerReflectionRequest.FromString,
        reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    for name in NAMES:
        registrar.add_registered_method_handlers(name, {"ServerReflectionInfo": handler})
