from __future__ import annotations

import pytest

from flue_grpc import cli

INT32, INT64 = 2**31 - 1, 2**63 - 1


@pytest.mark.parametrize(
    ("command", "most"),
    [
        (["show", "x", "--limit"], INT32),
        (["show", "x", "--last"], INT32),
        (["show", "x", "--at"], INT64),
        (["tail", "x", "-n"], INT32),
        (["search", "x", "--limit"], INT32),
        (["sessions", "--limit"], INT32),
        (["memory", "list", "--limit"], INT32),
        (["memory", "search", "x", "--limit"], INT32),
        (["memory", "edit", "--"], INT64),
        (["memory", "pin"], INT64),
        (["memory", "unpin"], INT64),
        (["memory", "delete"], INT64),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_numbers_are_those_that_the_wire_carries(capsys, command, most):
    rest = ["text"] if "edit" in command else []
    cli.make_parser().parse_args([*command, str(most), *rest])
    for number, told in (
        (most + 1, f"at most {most} is possible"),
        (10**30, f"at most {most} is possible"),
        ("x" * 9, "'xxxxxxxxx' is no whole number"),
        ("9" * 5000, "is no whole number"),
    ):
        with pytest.raises(SystemExit) as ended:
            cli.main([*command, str(number), *rest])
        assert ended.value.code == 2
        assert capsys.readouterr().err.endswith(f"{told}\n")
