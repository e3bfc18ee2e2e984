"""RPCs with grpcurl and ``buf curl``, which learn the services by reflection."""

from __future__ import annotations

import base64
import json
import re
import subprocess
from typing import TYPE_CHECKING, Any, Protocol

import grpc
from google.protobuf.json_format import MessageToDict
from google.rpc.error_details_pb2 import ErrorInfo
from steps import CallFailedError

from flue_grpc.limits import CLIENT_RECEIVE_BYTES

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

PACKAGES = {"Store": "flue.store.v1", "AgentIndex": "flue.agentindex.v1"}
CAMEL = re.compile("_([a-z])")
CODES = {code.value[0]: code.name for code in grpc.StatusCode}
MOST_REPEATS = 20  # a process for each call takes its time

# A command that has ended is all there is to see of it: nothing to interrupt.
_LIVE = ("break_after", "cancel_after", "until", "when_caught_up", "append", "write", "remove")
LIVE = dict.fromkeys(_LIVE, "is seen only once it has ended")


def obstacle(unable: Mapping[str, str], steps: list[dict[str, Any]]) -> str:
    """Say what a tool cannot do of these steps; nothing when it can do them all."""
    for step in steps:
        if step.get("repeat", 0) > MOST_REPEATS:
            return f"starts a process for each of over {MOST_REPEATS} calls"
        reasons = [unable[name] for name in step if name in unable]
        reason = reasons[0] if reasons else obstacle(unable, step.get("steps", []))
        if reason:
            return reason
    return ""


class Tool(Protocol):
    """What is particular to one command."""

    unable: Mapping[str, str]

    def command(self, method: str, token: str, seconds: float) -> list[str]: ...

    def responses(self, text: str) -> Iterator[Any]: ...

    def failure(self, text: str) -> dict[str, Any]: ...


class ToolCaller:
    """Runs one command for each call and reads what it prints."""

    def __init__(self, tool: Tool) -> None:
        self._tool = tool

    def obstacle(self, steps: list[dict[str, Any]]) -> str:
        """Say why the tool is not able to do the steps; nothing when it is."""
        return obstacle(self._tool.unable, steps)

    def close(self) -> None:
        """Do nothing: no command is left."""

    def call(self, method: str, request: Any, token: str, seconds: float) -> Any:
        """Make a unary call."""
        return next(self.stream(method, request, token, seconds))

    def stream(self, method: str, request: Any, token: str, seconds: float) -> Iterator[Any]:
        """Make a call and yield its responses; they are all there by then."""
        done = subprocess.run(
            self._tool.command(method, token, seconds),
            input=json.dumps(request),
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds + 30,
        )
        yield from self._tool.responses(done.stdout)
        if done.returncode:
            raise CallFailedError(self._tool.failure(done.stderr))


class Grpcurl:
    """Every call with grpcurl."""

    unable = LIVE

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options

    def command(self, method: str, token: str, seconds: float) -> list[str]:
        """Compose a grpcurl command."""
        options = ["-format-error", "-max-msg-sz", str(CLIENT_RECEIVE_BYTES)]
        options += ["-max-time", str(seconds), "-d", "@"]
        if token:
            options += ["-rpc-header", f"authorization: Bearer {token}"]
        if self._options.token:
            options += ["-reflect-header", f"authorization: Bearer {self._options.token}"]
        options += ["-cacert", self._options.ca] if self._options.ca else ["-plaintext"]
        return [self._options.command, *options, self._options.address, full_name(method)]

    def responses(self, text: str) -> Iterator[Any]:
        """Spell names as protobuf JSON does; by reflection grpcurl has the proto's."""
        yield from map(in_camel_case, documents(text))

    def failure(self, text: str) -> dict[str, Any]:
        """Read the status that grpcurl prints as JSON."""
        status = next(documents(text), None)
        if not isinstance(status, dict):
            return {"code": "UNKNOWN", "message": text}
        found = {"code": CODES[status.get("code", 2)], "message": status.get("message", "")}
        for detail in status.get("details", []):
            if detail["@type"].endswith("/google.rpc.ErrorInfo"):
                found |= {key: detail.get(key) for key in ("reason", "metadata", "domain")}
        return found


class BufCurl:
    """Every call with ``buf curl``, which has no deadline of its own."""

    unable = LIVE | {"deadline_ms": "has no deadline to set"}

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options

    def command(self, method: str, token: str, seconds: float) -> list[str]:
        """Compose a ``buf curl`` command."""
        del seconds
        options = ["--protocol", "grpc", "--data", "@-"]
        address = self._options.address
        if address.startswith("unix:"):
            options += ["--unix-socket", address.removeprefix("unix:")]
            address = "localhost"
        if token:
            options += ["--header", f"authorization: Bearer {token}"]
        if self._options.token:
            options += ["--reflect-header", f"authorization: Bearer {self._options.token}"]
        if self._options.ca:
            options += ["--cacert", self._options.ca]
        else:
            options.append("--http2-prior-knowledge")
        scheme = "https" if self._options.ca else "http"
        url = f"{scheme}://{address}/{full_name(method)}"
        return [self._options.command, "curl", *options, url]

    def responses(self, text: str) -> Iterator[Any]:
        """Read the responses, one after another."""
        yield from documents(text)

    def failure(self, text: str) -> dict[str, Any]:
        """Read the error that buf prints as JSON; its details are base64."""
        error = next(documents(text), None)
        if not isinstance(error, dict):
            return {"code": "UNKNOWN", "message": text}
        found = {"code": buf_code(error["code"]), "message": error.get("message", "")}
        for detail in error.get("details", []):
            if detail["type"].endswith("google.rpc.ErrorInfo"):
                padded = detail["value"] + "=" * (-len(detail["value"]) % 4)
                found |= MessageToDict(ErrorInfo.FromString(base64.b64decode(padded)))
        return found


def full_name(method: str) -> str:
    """Name a method with its package."""
    return f"{PACKAGES[method.partition('/')[0]]}.{method}"


def in_camel_case(value: Any) -> Any:
    """Spell the names of a JSON value ``likeThis``; none of ours in a map has a ``_``."""
    if isinstance(value, dict):
        return {CAMEL.sub(lambda m: m[1].upper(), k): in_camel_case(v) for k, v in value.items()}
    return [in_camel_case(member) for member in value] if isinstance(value, list) else value


def buf_code(name: str) -> str:
    """Spell a code of Connect as gRPC does."""
    upper = name.upper()
    return "CANCELLED" if upper == "CANCELED" else upper


def documents(text: str) -> Iterator[Any]:
    """Yield the JSON documents that follow one another in ``text``."""
    decoder = json.JSONDecoder()
    rest = text.lstrip()
    while rest.startswith(("{", "[")):
        try:
            document, end = decoder.raw_decode(rest)
        except json.JSONDecodeError:
            return
        yield document
        rest = rest[end:].lstrip()
