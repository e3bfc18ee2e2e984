from __future__ import annotations

import io
import json
import logging
import sys

import pytest

from flue_grpc import config, logs


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def loggers():
    """Put the process's loggers back as they were."""
    names = (None, "grpc", logs.ACCESS, "py.warnings")
    before = [(name, logging.getLogger(name).level) for name in names]
    handlers = logging.getLogger().handlers[:]
    yield
    logging.captureWarnings(capture=False)
    logging.getLogger().handlers[:] = handlers
    for name, level in before:
        logging.getLogger(name).setLevel(level)


def started(stream=None, **settings):
    stream = stream or io.StringIO()
    logs.start_logging(config.combine(settings, {"HOME": "/h"}).settings, stream)
    return stream


def test_text_lines_have_a_time_a_level_and_fields():
    stream = started()
    logging.getLogger("x").warning("went\n%s", "wrong", extra={"call": "ab", "why": 'a "b" c'})
    time, rest = stream.getvalue().split(" ", 1)
    assert len(time) == len("2026-01-01T00:00:00.000Z")
    assert time.endswith("Z")
    assert rest == 'WARNING went\\nwrong call=ab why="a \\"b\\" c"\n'


def test_json_lines_are_objects():
    stream = started(log_format="json")
    logging.getLogger("x").info("né %s", 1, extra={"call": "ab", "bytes": 5, "odd": object})
    line = json.loads(stream.getvalue())
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "info",
        "logger": "x",
        "message": "né 1",
        "call": "ab",
        "bytes": 5,
        "odd": str(object),
    }


SECRET = "canary"


def fail(text):
    try:
        {}[text]
    except KeyError as error:
        raise LookupError(text) from error


def logged(**settings):
    stream = started(**settings)
    try:
        fail(SECRET)
    except LookupError:
        logging.getLogger("x").exception("failed")
    return stream.getvalue()


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_traceback_says_where_and_what_but_not_its_text(form):
    text = logged(log_format=form)
    assert "LookupError from KeyError" in text
    assert "in fail" in text
    assert SECRET not in text


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_text_is_shown_when_debugging(form):
    assert f"LookupError: {SECRET}" in logged(log_format=form, log_level="debug")


def test_the_level_holds_for_everything():
    stream = started(log_level="error")
    logging.getLogger("flue_grpc.x").warning("no")
    logging.getLogger("other").error("yes")
    assert stream.getvalue().count("\n") == 1


@pytest.mark.parametrize(
    ("stream", "setting", "is_logged"),
    [
        (io.StringIO, "auto", True),
        (Terminal, "auto", False),
        (Terminal, "on", True),
        (io.StringIO, "off", False),
    ],
)
def test_calls_are_logged_unless_a_person_looks_on(stream, setting, is_logged):
    written = started(stream(), access_log=setting)
    logging.getLogger(logs.ACCESS).info("call")
    logging.getLogger("flue_grpc.errors").error("always")
    assert ("call" in written.getvalue()) == is_logged
    assert "always" in written.getvalue()


def test_grpcio_writes_no_exceptions():
    stream = started()
    logging.getLogger("grpc._server").error("Exception: secret")
    assert stream.getvalue() == ""


def test_nothing_of_it_goes_to_stdout(capsys):
    started(sys.stderr)
    logging.getLogger("x").error("to stderr")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "to stderr" in captured.err
