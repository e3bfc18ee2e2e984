from __future__ import annotations

from pathlib import Path

import pytest

from flue_grpc import config, limits
from flue_grpc.errors import ConfigError
from flue_grpc.settings import all_settings


@pytest.fixture
def environment(tmp_path):
    return {"HOME": str(tmp_path)}


def write(tmp_path, text):
    path = tmp_path / ".config" / "flue" / "grpc.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_defaults_lie_below_the_home(environment, tmp_path):
    found = config.load({}, environment)
    assert found.settings.home == tmp_path
    assert found.settings.data_dir == tmp_path / ".local/share/flue-grpc"
    assert found.settings.listen == (f"unix:{tmp_path}/.local/share/flue-grpc/flue.sock",)
    assert set(found.origins.values()) == {"default"}
    assert set(found.origins) == set(all_settings())
    assert not found.is_explicit("home")


def test_base_directories_move_the_defaults(environment):
    environment |= {"XDG_DATA_HOME": "/data", "XDG_RUNTIME_DIR": "/run/user/7"}
    found = config.load({}, environment)
    assert found.settings.data_dir == Path("/data/flue-grpc")
    assert found.settings.listen == ("unix:/run/user/7/flue-grpc/flue.sock",)


def test_relative_base_directories_are_ignored(environment, tmp_path):
    environment |= {"XDG_DATA_HOME": "data", "XDG_RUNTIME_DIR": ""}
    assert config.load({}, environment).settings.data_dir == tmp_path / ".local/share/flue-grpc"


def test_flags_beat_the_environment_which_beats_the_file_which_beats_defaults(
    environment, tmp_path
):
    path = write(tmp_path, "page_max = 20\npage_default = 10\nsearch_max = 30\n")
    environment |= {"FLUE_GRPC_PAGE_MAX": "21", "FLUE_GRPC_PAGE_DEFAULT": "11"}
    found = config.load({"page_max": "22", "ranked_index": None, "run": object()}, environment)
    settings, origins = found.settings, found.origins
    assert (settings.page_max, origins["page_max"]) == (22, "--page-max")
    assert (settings.page_default, origins["page_default"]) == (11, "FLUE_GRPC_PAGE_DEFAULT")
    assert (settings.search_max, origins["search_max"]) == (30, str(path))
    assert (settings.search_default, origins["search_default"]) == (50, "default")
    assert found.is_explicit("search_max")


def test_every_setting_can_come_from_each_source(environment, tmp_path):
    samples = {
        "listen": "unix:/a,127.0.0.1:5",
        "home": "/h",
        "data_dir": "/d",
        "durability": "normal",
        "log_level": "debug",
        "log_format": "json",
        "access_log": "off",
        "token_file": "/t",
        "tls_cert": "/c",
        "tls_key": "/k",
        "tls_client_ca": "/a",
        "tls_clients": "a=full,b=read",
        "metrics_listen": "127.0.0.1:5",
    }
    defaults = config.load({}, environment).settings
    for name in all_settings():
        sample = samples.get(name)
        if sample is None:
            default = getattr(defaults, name)
            sample = "true" if default is False else "false" if default is True else "7"
        by_variable = config.load({}, environment | {f"FLUE_GRPC_{name.upper()}": sample})
        by_flag = config.load({name: sample}, environment)
        quoted = sample if sample in ("true", "false", "7") else f'"{sample}"'
        write(tmp_path, f"{name} = {quoted}\n")
        by_file = config.load({}, environment)
        write(tmp_path, "")
        values = {getattr(found.settings, name) for found in (by_variable, by_flag, by_file)}
        assert len(values) == 1, name
        assert values != {getattr(defaults, name)}, name


@pytest.mark.parametrize(
    ("variable", "told"),
    [
        ("FLUE_GRPC_LISTN", ["FLUE_GRPC_LISTN names no setting; did you mean FLUE_GRPC_LISTEN?"]),
        ("FLUE_GRPC_CONFG", ["FLUE_GRPC_CONFG names no setting; did you mean FLUE_GRPC_CONFIG?"]),
        ("FLUE_GRPC_", ["FLUE_GRPC_ names no setting"]),
        ("FLUE_GRPC_XYZZY", ["FLUE_GRPC_XYZZY names no setting"]),
        ("FLUE_GRPC_LISTEN", []),
        ("FLUE_GRPC_CONFIG", []),
        ("FLUE_GRPCS", []),
        ("FLUE_GRPC_PORT", []),
        ("FLUE_GRPC_SERVICE_HOST", []),
        ("FLUE_GRPC_SERVICE_PORT", []),
        ("FLUE_GRPC_SERVICE_PORT_METRICS", []),
        ("FLUE_GRPC_PORT_50051_TCP", []),
        ("FLUE_GRPC_PORT_50051_TCP_ADDR", []),
        ("FLUE_GRPC_METRICS_PORT_9464_TCP_PROTO", []),
    ],
)
def test_a_variable_without_a_setting_is_told_unless_kubernetes_made_it(variable, told):
    assert list(config.unknown_variables({variable: "x", "HOME": "/"})) == told


def test_the_file_can_be_another_one(environment, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('listen = ["unix:/x", "127.0.0.1:9"]\n')
    assert config.load({"config": str(path)}, environment).settings.listen == (
        "unix:/x",
        "127.0.0.1:9",
    )
    environment["FLUE_GRPC_CONFIG"] = str(path)
    assert config.load({}, environment).origins["listen"] == str(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("page_maxx = 3\n", "unknown key 'page_maxx'; did you mean 'page_max'?"),
        ("page-max = 3\n", "unknown key 'page-max'; did you mean 'page_max'?"),
        ("[limits]\npage_max = 3\n", "unknown key 'limits'"),
        ("page_max = 0\n", "page_max must be a whole number of at least 1"),
        ("page_max = true\n", "page_max must be a whole number of at least 1"),
        ("page_max = 3.5\n", "page_max must be a whole number of at least 1"),
        ("page_max = 3000000000\n", "page_max must be a whole number of at least 1"),
        ('ranked_index = "maybe"\n', "ranked_index must be true or false"),
        ("ranked_index = 1\n", "ranked_index must be true or false"),
        ("stall_seconds = 0\n", "stall_seconds must be a number of seconds greater than 0"),
        ("stall_seconds = nan\n", "stall_seconds must be a number of seconds greater than 0"),
        ("stall_seconds = []\n", "stall_seconds must be a number of seconds greater than 0"),
        ("stall_seconds = true\n", "stall_seconds must be a number of seconds greater than 0"),
        ('search_bytes = "5 kg"\n', "search_bytes must be a size of at least 1 byte"),
        ('search_bytes = "KiB"\n', "search_bytes must be a size of at least 1 byte"),
        ("search_bytes = -1\n", "search_bytes must be a size of at least 1 byte"),
        (
            "snippet_code_points = 4001\n",
            "snippet_code_points must be a whole number of at most 4000",
        ),
        ("first_prompt_bytes = 4097\n", "first_prompt_bytes must be a size of at most 4096 bytes"),
        ('durability = "none"\n', "durability must be full or normal"),
        ("durability = 1\n", "durability must be full or normal"),
        ("home = 5\n", "home must be a path"),
        ('home = ""\n', "home must be a path"),
        ('home = "~nobody-of-that-name/x"\n', "home must be a path whose home directory is known"),
        ("listen = [1]\n", "listen must be a string or a list of strings, none empty"),
        ('listen = ""\n', "listen must be a string or a list of strings, none empty"),
        ("page_max = \n", "Invalid value"),
    ],
)
def test_mistakes_in_the_file_name_it_and_the_key(environment, tmp_path, text, said):
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        config.load({}, environment)
    assert str(caught.value).startswith(f"{path}: ")
    assert said in str(caught.value)


def test_mistakes_in_flags_and_variables_name_them(environment):
    with pytest.raises(ConfigError, match=r"^--page-max: page_max must be a whole number"):
        config.load({"page_max": "many"}, environment)
    with pytest.raises(
        ConfigError, match=r"^FLUE_GRPC_RANKED_INDEX: ranked_index must be true or false"
    ):
        config.load({}, environment | {"FLUE_GRPC_RANKED_INDEX": "maybe"})


def test_variables_that_kubernetes_makes_are_no_mistake(environment):
    environment |= {"FLUE_GRPC_PORT": "tcp://10.0.0.1:80", "FLUE_GRPC_SERVICE_HOST": "10.0.0.1"}
    assert set(config.load({}, environment).origins.values()) == {"default"}


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir()])
def test_a_file_that_was_asked_for_has_to_be_readable(environment, tmp_path, make):
    path = tmp_path / "other.toml"
    make(path)
    with pytest.raises(ConfigError, match=r"other\.toml: "):
        config.load({"config": str(path)}, environment)


def test_a_file_that_is_not_text_is_refused(environment, tmp_path):
    write(tmp_path, "").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="is not UTF-8 text"):
        config.load({}, environment)


@pytest.mark.parametrize(
    ("text", "size"),
    [("1", 1), ("64KiB", 65536), ("64 KiB", 65536), ("2MiB", 2 << 20), ("1GiB", 1 << 30)],
)
def test_sizes_have_units(environment, text, size):
    assert config.load({"search_bytes": text}, environment).settings.search_bytes == size


def test_paths_are_absolute_and_know_the_home(environment, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    found = config.load({"home": "~/x", "data_dir": "y"}, environment).settings
    assert found.home == tmp_path / "x"
    assert found.data_dir == tmp_path / "y"


def test_a_program_that_embeds_us_gives_values_alone(environment, tmp_path):
    write(tmp_path, "page_max = 20\n")
    found = config.combine({"home": tmp_path / "h", "ranked_index": False}, environment)
    assert found.settings.home == tmp_path / "h"
    assert found.settings.ranked_index is False
    assert found.settings.page_max == limits.PAGE_MAX
    assert found.is_explicit("home")
    with pytest.raises(ConfigError, match="unknown setting 'hme'; did you mean 'home'"):
        config.combine({"hme": "/"}, environment)
