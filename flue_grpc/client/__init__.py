"""A typed client of both services: ``with connect() as client: ...``.

Lists are iterators of items. A stream that breaks goes on by itself from the
last response that arrived, a write that may have been lost is repeated under its
request id, and every call has a deadline where one makes sense.
"""

from __future__ import annotations

from flue_grpc.client.agentindex import AgentIndexClient, Filter
from flue_grpc.client.client import Client, connect
from flue_grpc.client.failures import CallError
from flue_grpc.client.retry import RetryPolicy
from flue_grpc.client.store import StoreClient
from flue_grpc.client.streams import ItemStream
from flue_grpc.client.target import Target

__all__ = [
    "AgentIndexClient",
    "CallError",
    "Client",
    "Filter",
    "ItemStream",
    "RetryPolicy",
    "StoreClient",
    "Target",
    "connect",
]
