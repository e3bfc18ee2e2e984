"""What each role may call.

A role that may only read is given a list of what it may call, so a method that
is added later stays closed to it until somebody has thought about it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from flue_grpc.errors import ReadOnlyCredentialsError


class Role(StrEnum):
    """What a caller may do, as tokens, settings and log lines write it."""

    FULL = "full"
    READ = "read"


class Principal(msgspec.Struct, frozen=True):
    """A caller whose credentials were right; ``name`` is fit for a log line."""

    name: str
    role: Role


HEALTH_PREFIX: Final = "/grpc.health.v1.Health/"

_STORE_READS: Final = (
    "GetSession",
    "ListSessions",
    "ListMessages",
    "SearchMessages",
    "RecentMemory",
    "ScopeMemory",
    "ScopeMemorySize",
    "SearchMemory",
)
_AGENT_INDEX_READS: Final = (
    "Snapshot",
    "Resolve",
    "ReadPage",
    "ReadTranscript",
    "ReadMessage",
    "Search",
    "Watch",
    "Usage",
)
READ_METHODS: Final = frozenset(
    (
        *(f"/flue.store.v1.Store/{name}" for name in _STORE_READS),
        *(f"/flue.agentindex.v1.AgentIndex/{name}" for name in _AGENT_INDEX_READS),
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    )
)


def is_open(method: str) -> bool:
    """Say whether anybody may call ``method``: health alone is open."""
    return method.startswith(HEALTH_PREFIX)


def check_allowed(principal: Principal, method: str) -> None:
    """Raise ReadOnlyCredentialsError when the caller's role does not cover ``method``."""
    if principal.role is Role.READ and method not in READ_METHODS:
        raise ReadOnlyCredentialsError("these credentials may only read")
