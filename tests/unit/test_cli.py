from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from flue_grpc import cli
from flue_grpc.commands.completion_scripts import words_of
from flue_grpc.store.store import Store
from tests.programs import run

FULL = Path("/dev/full")


def test_help_names_every_command():
    shown = run("--help")
    assert shown.returncode == 0
    assert shown.stderr == ""
    for name in ("serve", "config", "health"):
        assert f"\n    {name} " in shown.stdout


def examples(parser):
    """The command lines of a help: what stands before a pipe, a redirection and a remark."""
    shown = parser.format_help().partition("\nexamples:\n")[2].partition("\n\n")[0]
    return re.findall(r"flue-grpc ((?:'[^']*'|(?!   ?\S|[|<>)]).)*)", shown)


COMMANDS = dict(words_of(cli.make_parser()))[""].verbs


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_every_command_has_examples_that_it_takes(name):
    parser, commands = cli._parser_and_commands()
    (action,) = (a for a in parser._actions if a.dest == "command")
    lines = examples(action.choices[name])
    assert any(line.split()[0] == name for line in lines)
    for line in lines:
        assert parser.parse_args(shlex.split(line)).command in commands


def test_help_imports_nothing_heavy():
    code = (
        "import sys\n"
        "from flue_grpc import cli\n"
        "cli.make_parser()\n"
        "print(sorted({'grpc', 'google', 'apsw', 'msgspec', 'logging', 'rich'} & set(sys.modules)))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert shown.stdout == "[]\n"


def test_without_a_command_the_help_is_shown():
    shown, asked = run(), run("--help")
    assert (shown.stdout, shown.stderr, shown.returncode) == (asked.stdout, "", 0)


@pytest.mark.parametrize(
    ("word", "advice"),
    [
        ("sesions", "did you mean 'sessions'?"),
        ("serach", "did you mean 'search'?"),
        ("retore", "did you mean 'restore'?"),
        ("xyzzy", "flue-grpc --help lists them"),
    ],
)
def test_a_command_that_is_not_there_is_told_with_the_nearest(capsys, word, advice):
    with pytest.raises(SystemExit) as ended:
        cli.main([word, "--json"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        "usage: flue-grpc [-h] [--version] COMMAND ...\n"
        f"flue-grpc: error: there is no command {word!r}; {advice}\n"
    )


@pytest.mark.parametrize("name", ["serve", "config", "health"])
def test_every_command_has_help(name):
    shown = run(name, "--help")
    assert shown.returncode == 0
    assert "--data-dir" in shown.stdout


@pytest.mark.parametrize(
    ("option", "told"),
    [
        (
            "--durability {full,normal}",
            "full survives a power cut, normal is faster (default: full)",
        ),
        ("--log-level {debug,info,warning,error}", "least level that is logged (default: info)"),
        ("--log-format {text,json}", "form of log lines (default: text)"),
        ("--access-log {auto,on,off}", "log each call; auto: not on a terminal (default: auto)"),
    ],
)
def test_the_help_of_serve_tells_choices_and_defaults(capsys, option, told):
    with pytest.raises(SystemExit):
        cli.main(["serve", "--help"])
    assert f"{option} {told}" in " ".join(capsys.readouterr().out.split())


def test_the_version():
    shown = run("--version")
    assert shown.returncode == 0
    assert shown.stdout.startswith("flue-grpc 0.")


def test_config_prints_toml_with_origins(home, capsys, monkeypatch):
    monkeypatch.setenv("FLUE_GRPC_SEARCH_MAX", "7")
    assert (
        cli.main(["config", "--page-max", "9", "--no-ranked-index", "--listen", "unix:/a b"]) == 0
    )
    shown = capsys.readouterr().out
    values = tomllib.loads(shown)
    assert values["page_max"] == 9
    assert values["ranked_index"] is False
    assert values["listen"] == ["unix:/a b"]
    assert values["home"] == str(home)
    assert values["stall_seconds"] == 60.0
    origins = {line.split(" ")[0]: line.rsplit("# ", 1)[1] for line in shown.splitlines()}
    assert origins["page_max"] == "--page-max"
    assert origins["ranked_index"] == "--ranked-index"
    assert origins["search_max"] == "FLUE_GRPC_SEARCH_MAX"
    assert origins["home"] == "default"


def test_a_variable_that_names_no_setting_is_told(home, capsys, monkeypatch):
    monkeypatch.setenv("FLUE_GRPC_PAGE_MAXX", "7")
    monkeypatch.setenv("FLUE_GRPC_XYZZY", "7")
    assert cli.main(["config"]) == 0
    assert capsys.readouterr().err == (
        "flue-grpc: FLUE_GRPC_PAGE_MAXX names no setting; did you mean FLUE_GRPC_PAGE_MAX?\n"
        "flue-grpc: FLUE_GRPC_XYZZY names no setting\n"
    )
    assert cli.main(["completion", "bash"]) == 0
    assert capsys.readouterr().err == ""


def test_what_config_prints_can_be_a_configuration_file(home, capsys):
    cli.main(["config"])
    first = capsys.readouterr().out
    path = home / "all.toml"
    path.write_text(first)
    assert cli.main(["config", "--config", str(path)]) == 0
    second = capsys.readouterr().out
    assert tomllib.loads(second) == tomllib.loads(first)
    assert all(line.endswith(f"# {path}") for line in second.splitlines())


def test_a_wrong_setting_is_one_line_and_exit_code_2(home, capsys):
    assert cli.main(["config", "--page-max", "none"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (
        "flue-grpc: --page-max: page_max must be a whole number of at least 1\n"
    )


def test_a_reader_that_has_enough_is_no_error(home):
    read, write = os.pipe()
    os.close(read)
    try:
        shown = subprocess.run(
            [sys.executable, "-m", "flue_grpc", "config"],
            stdout=write,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )
    finally:
        os.close(write)
    assert (shown.stderr, shown.returncode) == ("", 141)


@pytest.mark.skipif(not FULL.exists(), reason="there is no disk that is always full")
def test_output_that_cannot_be_written_is_told_in_words(home):
    with FULL.open("wb") as full:
        shown = subprocess.run(
            [sys.executable, "-m", "flue_grpc", "config"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )
    assert (shown.stderr, shown.returncode) == ("flue-grpc: No space left on device\n", 2)


@pytest.mark.parametrize(
    ("arguments", "usage", "mistake"),
    [
        (("search", "a", "b"), "search", "b; quote a text of several words"),
        (("search", "a", "--xyzzy"), "search", "--xyzzy"),
        (("memory", "add", "a", "b"), "memory add", "b; quote a text of several words"),
        (("sessions", "x"), "sessions", "x"),
    ],
)
def test_what_a_command_does_not_take_is_told_with_its_usage(capsys, arguments, usage, mistake):
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert told.startswith(f"usage: flue-grpc {usage} [-h]")
    assert told.endswith(f"flue-grpc {usage}: error: unrecognized arguments: {mistake}\n")


@pytest.mark.parametrize(
    ("words", "flags"),
    [
        (("help",), ("--help",)),
        (("help", "memory", "add"), ("memory", "add", "--help")),
        (("version",), ("--version",)),
    ],
)
def test_help_and_version_are_words_too(capsys, words, flags):
    shown = []
    for arguments in (words, flags):
        with pytest.raises(SystemExit) as ended:
            cli.main(arguments)
        assert ended.value.code == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1] != ""


def test_what_an_encoding_has_not_is_escaped(home):
    made = run("memory", "add", "結帳", "--scope", "x", "--data-dir", str(home / "data"))
    assert made.returncode == 0
    shown = run(
        "memory", "list", "--scope", "x", "--data-dir", str(home / "data"),
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.endswith("\t\\u7d50\\u5e33\n")


def test_a_directory_that_links_to_itself_is_told_in_words(home, capsys):
    loop = home / "loop"
    loop.symlink_to(loop)
    assert cli.main(["memory", "list", "--data-dir", str(loop)]) == 2
    assert capsys.readouterr().err == (
        f"flue-grpc: {loop}/store.db cannot be opened: Too many levels of symbolic links\n"
    )


@pytest.mark.parametrize("name", ["flue_grpc.cli", "flue_grpc.commands.sessions"])
def test_an_interrupt_while_it_is_imported_ends_it_quietly(name):
    code = (
        "import sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {name!r}: raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "from flue_grpc.__main__ import main\n"
        "sys.exit(main())"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, "sessions"],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


@pytest.mark.parametrize(
    "arguments",
    [
        ("memory", "add", "--scope", "x", "\udcff"),
        ("memory", "add", "--scope", "\udcff", "x"),
        ("memory", "search", "\udcff"),
        ("search", "\udcff"),
        ("sessions", "--cwd", "\udcff"),
        ("export", "--session", "\udcff"),
    ],
    ids=" ".join,
)
def test_an_argument_that_is_no_text_is_told_in_words(home, arguments):
    path = home / ".local/share/flue-grpc/store.db"
    Store.open(path).close()
    shown = run(*arguments)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert shown.stderr.endswith("\\udcff' is not UTF-8 text\n")
    assert shown.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["health", "doctor", "token list", "token new"])
def test_help_shows_the_flags_that_matter_and_takes_all_of_the_server(capsys, command):
    with pytest.raises(SystemExit):
        cli.main([*command.split(), "--help"])
    shown = capsys.readouterr().out
    assert "--data-dir" in shown
    assert "--page-max" not in shown
    assert (
        "\nEvery flag of `flue-grpc serve` is taken, to mean the server that it starts.\n" in shown
    )
    parsed = cli.make_parser().parse_args(
        [*command.split(), "--page-max", "9", *(["n"] if command == "token new" else [])]
    )
    assert parsed.page_max == "9"
