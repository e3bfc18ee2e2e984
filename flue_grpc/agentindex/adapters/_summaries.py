"""Putting a summary together, the same way for all tools (behaviour B5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from flue_grpc.agentindex.adapters._names import title_of
from flue_grpc.agentindex.adapters._tally import NO_TOKENS, Tally
from flue_grpc.agentindex.values import Resume, Summary

if TYPE_CHECKING:
    from flue_grpc.agentindex.adapters.base import FileFacts


class Traits(msgspec.Struct, frozen=True):
    """What a summary says besides its counts; ``title`` is empty for one from the prompt."""

    id: str
    cwd: str
    title: str
    first_prompt: str
    resume: tuple[str, ...]
    parent_id: str = ""
    is_subagent: bool = False
    git_branch: str = ""
    tool_version: str = ""
    cost_usd: float | None = None


def summary_of(tool: str, traits: Traits, tally: Tally, file: FileFacts) -> Summary:
    """Put a summary together. A subagent cannot be resumed (formats §8.5)."""
    can_resume = traits.cwd and not traits.is_subagent
    command, *args = traits.resume
    return Summary(
        id=traits.id,
        tool=tool,
        cwd=traits.cwd,
        title=traits.title or title_of(traits.first_prompt),
        first_prompt=traits.first_prompt,
        started_at=tally.started_at,
        ended_at=tally.ended_at,
        message_count=tally.message_count,
        tool_call_count=tally.tool_call_count,
        models=tuple(tally.models),
        tokens=tally.tokens,
        cost_usd=traits.cost_usd,
        file_size=file.size,
        resume=Resume(command, tuple(args), traits.cwd) if can_resume else None,
        prompt_count=tally.prompt_count,
        parent_id=traits.parent_id,
        git_branch=traits.git_branch,
        tool_version=traits.tool_version,
        subagent_tokens=NO_TOKENS,
        updated_at=file.mtime,
        revision=file.revision,
        is_subagent=traits.is_subagent,
    )
