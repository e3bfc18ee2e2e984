"""The tools whose transcripts are read; a new one needs its module and a line here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from flue_grpc.agentindex.adapters.claude import Claude
from flue_grpc.agentindex.adapters.codex import Codex
from flue_grpc.agentindex.adapters.pi import Pi

if TYPE_CHECKING:
    from flue_grpc.agentindex.adapters.base import Adapter

ADAPTERS: Final[tuple[Adapter[Any], ...]] = (Claude(), Codex(), Pi())
