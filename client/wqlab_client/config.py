"""Resolve server, token and tree from flags, the environment and the configuration file, in this order.

The file is `$XDG_CONFIG_HOME/wqlab/config.toml` (by default `~/.config/wqlab/config.toml`):

    url = "https://lab.example.org"
    token = "wql_..."
    tree = "linux-6.12"     # optional: the default tree of `wqlab submit`

A token belongs to one server. The one in the file is only ever sent to the URL in the same file, and the one in
the environment is not combined with another URL's token.
"""

from __future__ import annotations

import json
import os
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .errors import UsageError

KEYS = ("url", "token", "tree")
_PRIVATE = stat.S_IRUSR | stat.S_IWUSR


@dataclass(frozen=True)
class Setting:
    """Value of the configuration with its origin."""

    value: str
    origin: str
    """`--url`, `WQLAB_URL`, the path of the file or similar."""


@dataclass(frozen=True)
class Config:
    """Resolved configuration of one command."""

    path: Path
    url: Setting | None
    token: Setting | None
    tree: Setting | None
    warnings: tuple[str, ...] = ()

    def server(self) -> str:
        """Return the server's URL. Raises UsageError if none is configured."""
        if self.url is None:
            raise UsageError(
                "no lab is configured",
                f"pass --url, set WQLAB_URL, or run `wqlab login URL`, which writes {self.path}",
            )
        return self.url.value


def config_path(environment: Mapping[str, str]) -> Path:
    home = environment.get("XDG_CONFIG_HOME", "")
    base = Path(home) if home.startswith("/") else Path(environment.get("HOME", "~")).expanduser() / ".config"
    return base / "wqlab" / "config.toml"


def resolve(
    environment: Mapping[str, str],
    *,
    url: str | None = None,
    token: str | None = None,
    token_file: Path | None = None,
    path: Path | None = None,
) -> Config:
    """Resolve the configuration: flags (the keyword arguments) override the environment, which overrides the file.

    Raises UsageError for a file that cannot be read, is not TOML or holds an unknown key, and for a bad URL.
    """
    must_exist = path is not None
    path = path or config_path(environment)
    stored, warnings = _read(path, must_exist)

    def pick(key: str, flag: str | None, variable: str) -> Setting | None:
        if flag:
            return Setting(flag, f"--{key}")
        if environment.get(variable):
            return Setting(environment[variable], variable)
        return Setting(stored[key], str(path)) if key in stored else None

    chosen = pick("url", url, "WQLAB_URL")
    if chosen is not None:
        chosen = Setting(check_url(chosen.value, chosen.origin), chosen.origin)
    if token and token_file:
        raise UsageError("--token and --token-file are both given", "pass one of them")
    if token_file:
        secret: Setting | None = Setting(_read_token(token_file), f"--token-file {token_file}")
    else:
        secret = pick("token", token, "WQLAB_TOKEN")
    if chosen and secret and secret.origin == str(path) and not _same_server(chosen.value, stored.get("url", "")):
        warnings.append(
            f"the token in {path} is for {stored.get('url') or 'a server that the file does not name'}; "
            f"it is not sent to {chosen.value} (set WQLAB_TOKEN for that server)"
        )
        secret = None
    if chosen and secret and _is_clear_text(chosen.value):
        warnings.append(f"{chosen.value} is plain http: others on the network can read the token; use https")
    return Config(path, chosen, secret, pick("tree", None, "WQLAB_TREE"), tuple(warnings))


def check_url(url: str, origin: str) -> str:
    """Return the URL without a trailing slash. Raises UsageError unless it is http(s)://host[:port][/path]."""
    import httpx

    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise UsageError(f"{origin}: {url!r} is not a URL ({error})", "write it as https://lab.example.org") from None
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        raise UsageError(f"{origin}: {url!r} is not an http(s) URL", "write it as https://lab.example.org")
    return url.rstrip("/")


def store(path: Path, values: Mapping[str, str]) -> None:
    """Update the file with `values`; only its owner can read it, and comments in it are not kept."""
    stored, _ = _read(path, False)
    merged = {key: value for key in KEYS if (value := values.get(key, stored.get(key)))}
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # A JSON string is also a TOML basic string.
    text = "".join(f"{key} = {json.dumps(value)}\n" for key, value in merged.items())
    staged = path.with_name(path.name + ".new")
    staged.unlink(missing_ok=True)
    with os.fdopen(os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE), "w", encoding="utf-8") as file:
        file.write(text)
    staged.replace(path)


def _read(path: Path, must_exist: bool) -> tuple[dict[str, str], list[str]]:
    try:
        text = path.read_text(encoding="utf-8")
        mode = path.stat().st_mode
    except FileNotFoundError:
        if must_exist:
            raise UsageError(f"there is no configuration file {path}", "correct --config or leave it out") from None
        return {}, []
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}") from None
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is not valid TOML: {error}", "correct that line") from None
    for key, value in content.items():
        if key not in KEYS:
            raise UsageError(f"{path}: unknown key {key!r}", f"the keys are {', '.join(KEYS)}")
        if not isinstance(value, str):
            raise UsageError(f"{path}: {key} is not a string", f'write {key} = "..."')
    warnings = []
    if "token" in content and mode & (stat.S_IRWXG | stat.S_IRWXO):
        warnings.append(f"{path} contains a token and other users can read it: run chmod 600 {path}")
    return dict(content), warnings


def _read_token(path: Path) -> str:
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--token-file: cannot read {path}: {error}") from None
    if not token:
        raise UsageError(f"--token-file: {path} is empty", "put the API token into it")
    return token


def _same_server(one: str, other: str) -> bool:
    if not other:
        return False
    import httpx

    a, b = httpx.URL(one), httpx.URL(other)
    return (a.scheme, a.host, a.port) == (b.scheme, b.host, b.port)


def _is_clear_text(url: str) -> bool:
    import httpx

    parsed = httpx.URL(url)
    loopback = parsed.host in {"localhost", "::1"} or parsed.host.startswith("127.")
    return parsed.scheme == "http" and not loopback
