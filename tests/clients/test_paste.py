"""The lines that ``serve`` prints for a server over TLS work as pasted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography import x509

from flue_grpc.commands.paste import lines_to_paste
from flue_grpc.config import load
from flue_grpc.listeners import parse_address
from tests.tools import grpcurl


def pasted(line, directory):
    path = f"{grpcurl().parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-c", line], cwd=directory, env={**os.environ, "PATH": path},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("is_mutual", [False, True], ids=["token", "certificate"])
@pytest.mark.parametrize("number", [0, 1], ids=["grpcurl", "buf"])
def test_a_line_lists_the_sessions_over_tls(base, serving, authority, number, is_mutual):
    certificate, key = authority.issue("server", x509.DNSName("server.test")).write(base, "server")
    authority.issue("YOURS", x509.DNSName("client.test")).write(base, "YOURS")
    (base / "ca.crt").write_bytes(authority.certificate)
    trust = {"tls_client_ca": str(base / "ca.crt"), "tls_clients": ["client.test=full"]}
    files = {"tls_cert": str(certificate), "tls_key": str(key), **(trust if is_mutual else {})}
    with serving("127.0.0.1:0", **files) as server:
        while server.services.index.building:
            pass
        settings = load({**files, "data_dir": str(base / "data")}, {"HOME": str(base)}).settings
        done = pasted(lines_to_paste(server.addresses[0], settings)[number], base)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Summarise the refund rules" in done.stdout


def test_a_name_of_the_certificate_is_named_only_where_the_address_is_none(base, authority):
    certificate, key = authority.issue("server", x509.DNSName("localhost")).write(base, "server")
    files = {"tls_cert": str(certificate), "tls_key": str(key)}
    settings = load(files, {"HOME": str(base)}).settings
    every, _ = lines_to_paste(parse_address("0.0.0.0:50051"), settings)
    assert " localhost:50051 " in every
    assert "-authority" not in every
    assert "-authority localhost " in lines_to_paste(parse_address("127.0.0.1:7"), settings)[0]
