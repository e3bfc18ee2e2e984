from __future__ import annotations

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from flue_grpc.errors import ConfigError
from flue_grpc.limits import CERTIFICATE_FILE_BYTES
from flue_grpc.security import certificates
from flue_grpc.security.certificates import TlsFiles, TlsSource, load

IN_USE = "the TLS files changed and are in use"
OLD_STAY = "the TLS files changed and cannot be used; the old ones stay"


@pytest.fixture
def files(authority, tmp_path):
    certificate, key = authority.server().write(tmp_path, "server")
    client_ca = tmp_path / "clients.crt"
    client_ca.write_bytes(authority.certificate)
    return TlsFiles(certificate, key, client_ca)


@pytest.fixture
def told():
    return []


@pytest.fixture
def source(files, told):
    return TlsSource(files, told.append)


def test_unchanged_files_are_not_read_again(source, told, monkeypatch):
    monkeypatch.setattr(certificates, "load", None)
    assert source.changed() is None
    assert told == []


def test_changed_files_are_handed_over_once(source, told, authority, tmp_path):
    authority.server().write(tmp_path, "server")
    assert source.changed() is not None
    assert source.changed() is None
    assert told == [IN_USE]


def test_changed_client_authorities_are_a_change_too(source, files, other_authority, told):
    files.client_ca.write_bytes(other_authority.certificate)
    assert source.changed() is not None
    assert told == [IN_USE]


def test_half_a_rotation_keeps_the_old_pair_until_the_other_half_comes(
    source, files, authority, told
):
    new = authority.server()
    files.certificate.write_bytes(new.certificate)
    assert source.changed() is None
    files.key.write_bytes(new.key)
    assert source.changed() is not None
    assert told == [OLD_STAY, IN_USE]


@pytest.mark.parametrize("which", ["certificate", "key", "client_ca"])
@pytest.mark.parametrize("spoil", ["missing", "empty", "rubbish", "too large", "directory"])
def test_files_that_cannot_be_used_are_named_at_the_start_and_passed_over_later(
    source, files, told, which, spoil
):
    path = getattr(files, which)
    path.unlink()
    if spoil == "directory":
        path.mkdir()
    elif spoil != "missing":
        size = CERTIFICATE_FILE_BYTES + 1
        path.write_bytes({"empty": b"", "rubbish": b"\xff\x00", "too large": b"x" * size}[spoil])
    with pytest.raises(ConfigError, match=str(path)):
        load(files)
    assert source.changed() is None
    assert told == [OLD_STAY]


def test_a_key_of_another_certificate_is_refused(files, authority):
    files.key.write_bytes(authority.server().key)
    with pytest.raises(ConfigError, match="are not a PEM certificate and its key"):
        load(files)


def test_an_encrypted_key_is_refused_and_never_asks_on_the_terminal(files):
    key = load_pem_private_key(files.key.read_bytes(), None)
    files.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    with pytest.raises(ConfigError, match="are not a PEM certificate and its key"):
        load(files)
