"""Fixtures that tests of several layers share."""

from __future__ import annotations

import datetime as dt
import ipaddress
import signal
import threading
import time

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import HealthCheck, settings

# How busy the machine is decides no test.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

# A shell that starts us in the background has it ignored, and programs would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The threads of an index and a Store.
OURS = {"file-events", "followers", "store-writer", "sweep"}
ENDING_SECONDS = 20.0
DAY = dt.timedelta(days=1)
LOOPBACK = (
    x509.DNSName("localhost"),
    x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
)


class Issued:
    """A certificate and its key, as PEM bytes and as files once ``write`` was called."""

    def __init__(self, certificate, key):
        self.certificate = certificate.public_bytes(serialization.Encoding.PEM)
        self.key = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )

    def write(self, directory, stem):
        """Put both beside each other, each by rename, as rotating tools do."""
        paths = (directory / f"{stem}.crt", directory / f"{stem}.key")
        for path, data in zip(paths, (self.certificate, self.key), strict=True):
            new = path.with_suffix(".new")
            new.write_bytes(data)
            new.chmod(0o600)
            new.rename(path)
        return paths


class Authority:
    """A certificate authority that lives as long as a test."""

    def __init__(self, name="flue test authority"):
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = self._sign(self._name, self._key.public_key(), (), is_authority=True)
        self.certificate = certificate.public_bytes(serialization.Encoding.PEM)

    def issue(self, common_name, *names, valid_from=-DAY, valid_for=9 * DAY):
        """Sign a certificate with these subject alternative names."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
        certificate = self._sign(
            subject, key.public_key(), names, valid_from=valid_from, valid_for=valid_for
        )
        return Issued(certificate, key)

    def server(self):
        """Sign a certificate for a server on this machine."""
        return self.issue("server", *LOOPBACK)

    def _sign(self, subject, key, names, *, is_authority=False, valid_from=-DAY, valid_for=9 * DAY):
        begin = dt.datetime.now(dt.UTC) + valid_from
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(begin)
            .not_valid_after(begin + valid_for)
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return builder.sign(self._key, hashes.SHA256())


@pytest.fixture(scope="module", autouse=True)
def no_thread_is_left():
    """Fail the tests that leave a thread of ours: others would suffer for it."""
    before = set(threading.enumerate())
    yield
    until = time.monotonic() + ENDING_SECONDS
    for thread in set(threading.enumerate()) - before:
        if thread.name in OURS:
            thread.join(max(0.0, until - time.monotonic()))
            assert not thread.is_alive(), f"these tests leave a thread: {thread.name}"


def pytest_terminal_summary(terminalreporter):
    """Show what tests have counted: the figures of docs/reliability.md."""
    counted = [
        (report.nodeid, ", ".join(f"{name} {count}" for name, count in report.user_properties))
        for report in terminalreporter.getreports("passed")
        if report.when == "call" and report.user_properties
    ]
    if counted:
        terminalreporter.section("counted")
    for nodeid, figures in counted:
        terminalreporter.line(f"{nodeid}: {figures}")


@pytest.fixture
def authority():
    return Authority()


@pytest.fixture
def other_authority():
    return Authority("another authority")
