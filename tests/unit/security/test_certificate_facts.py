from __future__ import annotations

import datetime as dt
import time

import pytest
from cryptography import x509

from flue_grpc.errors import ConfigError
from flue_grpc.security.certificate_facts import read_facts

DAY = dt.timedelta(days=1)


def test_a_certificate_tells_its_end_and_its_names(authority, tmp_path):
    made = authority.issue("x", x509.DNSName("a.example"), x509.DNSName("b.example"))
    facts = read_facts(*made.write(tmp_path, "s"))
    assert facts.names == ("a.example", "b.example")
    assert 7.9 < (facts.not_after - time.time()) / 86_400 < 8.1


def test_one_without_names_has_none(authority, tmp_path):
    assert read_facts(*authority.issue("x").write(tmp_path, "s")).names == ()


@pytest.mark.parametrize("span", [(-9 * DAY, DAY), (DAY, DAY)])
def test_one_that_does_not_hold_now_is_told_in_words(authority, tmp_path, span):
    made = authority.issue("x", valid_from=span[0], valid_for=span[1])
    with pytest.raises(ConfigError, match=r"s\.crt: certificate (has expired|is not yet valid)"):
        read_facts(*made.write(tmp_path, "s"))


def test_what_is_none_is_told_in_words(tmp_path):
    (tmp_path / "s").write_text("no")
    with pytest.raises(ConfigError, match="are not a PEM certificate and its key"):
        read_facts(tmp_path / "s", tmp_path / "s")
