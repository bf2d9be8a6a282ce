from __future__ import annotations

import stat
from pathlib import Path

import pytest

from wqlab_client.config import config_path, resolve, store
from wqlab_client.errors import UsageError


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path)}


def write(environment: dict[str, str], text: str, mode: int = 0o600) -> Path:
    path = config_path(environment)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def values(environment: dict[str, str], **flags: str) -> tuple[str | None, str | None]:
    found = resolve(environment, **flags)  # type: ignore[arg-type]
    return (found.url.value if found.url else None, found.token.value if found.token else None)


def test_flags_override_environment_which_overrides_file(environment: dict[str, str]) -> None:
    assert values(environment) == (None, None)
    path = write(environment, 'url = "https://file.example"\ntoken = "from-file"\n')
    assert values(environment) == ("https://file.example", "from-file")
    both = environment | {"WQLAB_URL": "https://environment.example/", "WQLAB_TOKEN": "from-environment"}
    assert values(both) == ("https://environment.example", "from-environment")
    assert values(both, url="https://flag.example", token="from-flag") == ("https://flag.example", "from-flag")
    found = resolve(both, token="from-flag")
    assert found.url and found.url.origin == "WQLAB_URL"
    assert found.token and found.token.origin == "--token"
    assert resolve(environment).url.origin == str(path)  # type: ignore[union-attr]


def test_config_path_follows_xdg(tmp_path: Path) -> None:
    assert config_path({"HOME": "/h", "XDG_CONFIG_HOME": str(tmp_path)}) == tmp_path / "wqlab/config.toml"
    assert config_path({"HOME": "/h", "XDG_CONFIG_HOME": "relative"}) == Path("/h/.config/wqlab/config.toml")


def test_token_is_sent_only_to_its_server(environment: dict[str, str]) -> None:
    write(environment, 'url = "https://mine.example"\ntoken = "secret"\n')
    found = resolve(environment, url="https://other.example")
    assert found.token is None
    assert "it is not sent to https://other.example" in found.warnings[0]
    assert values(environment, url="https://mine.example:443/") == ("https://mine.example:443", "secret")
    write(environment, 'token = "secret"\n')
    assert values(environment, url="https://other.example") == ("https://other.example", None)


def test_readable_token_file_causes_a_warning(environment: dict[str, str]) -> None:
    text = 'url = "https://mine.example"\ntoken = "secret"\n'
    write(environment, text, 0o600)
    assert resolve(environment).warnings == ()
    path = write(environment, text, 0o640)
    assert resolve(environment).warnings == (
        f"{path} contains a token and other users can read it: run chmod 600 {path}",
    )
    write(environment, 'url = "https://mine.example"\n', 0o644)
    assert resolve(environment).warnings == ()


def test_token_over_plain_http_causes_a_warning_except_on_loopback(environment: dict[str, str]) -> None:
    assert "plain http" in resolve(environment, url="http://lab.example", token="t").warnings[0]
    for url in ("http://127.0.0.1:8080", "http://localhost:8080", "http://[::1]:8080", "https://lab.example"):
        assert resolve(environment, url=url, token="t").warnings == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("url = ", "is not valid TOML"),
        ('server = "https://x"', "unknown key 'server'. the keys are url, token, tree"),
        ("url = 7", 'url is not a string. write url = "..."'),
        ('url = "lab.example"', "is not an http"),
        ('url = "ftp://lab.example"', "is not an http"),
    ],
)
def test_file_errors_name_the_file(environment: dict[str, str], text: str, message: str) -> None:
    path = write(environment, text)
    with pytest.raises(UsageError) as error:
        resolve(environment)
    assert message in str(error.value)
    assert str(path) in str(error.value)


def test_named_file_must_exist(environment: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no configuration file"):
        resolve(environment, path=tmp_path / "none.toml")


def test_missing_server_error_names_the_fix(environment: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=r"no lab is configured.*WQLAB_URL.*wqlab login URL"):
        resolve(environment).server()


def test_token_file_is_read_and_excludes_token(environment: dict[str, str], tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text("  abc\n")
    found = resolve(environment, token_file=secret)
    assert found.token and found.token.value == "abc"
    with pytest.raises(UsageError, match="both given"):
        resolve(environment, token="x", token_file=secret)
    secret.write_text("\n")
    with pytest.raises(UsageError, match="is empty"):
        resolve(environment, token_file=secret)
    with pytest.raises(UsageError, match="cannot read"):
        resolve(environment, token_file=tmp_path / "none")


def test_store_keeps_other_keys_and_is_private(environment: dict[str, str]) -> None:
    path = write(environment, 'url = "https://old.example"\ntree = "linux-6.12"\n', 0o644)
    store(path, {"url": "https://new.example", "token": 'a"b\\c'})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    found = resolve(environment)
    assert values(environment) == ("https://new.example", 'a"b\\c')
    assert found.tree and found.tree.value == "linux-6.12"
