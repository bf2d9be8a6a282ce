"""Runs git with nothing but our own settings: no user or system configuration, no prompts, no hooks, no helpers."""

from __future__ import annotations

import ipaddress
import os
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, urljoin, urlsplit

import httpx

from .failures import InfrastructureError, JobError, UserError
from .workspace import Workspace

QUICK_S = 120.0
_FETCH_FILE_LIMIT = 6 << 30
_REDIRECTS = 5

_SETTINGS = """\
[user]
	name = wqlab
	email = wqlab@localhost
[core]
	hooksPath = /dev/null
	fsmonitor = false
	askPass = true
	compression = 1
	bigFileThreshold = 1g
	attributesFile = /dev/null
	excludesFile = /dev/null
	quotePath = false
[credential]
	helper =
[protocol]
	allow = never
[http]
	followRedirects = false
	lowSpeedLimit = 1000
	lowSpeedTime = 60
[fetch]
	recurseSubmodules = false
	unpackLimit = 1
	writeCommitGraph = false
[submodule]
	recurse = false
[gc]
	auto = 0
[maintenance]
	auto = false
[advice]
	detachedHead = false
[commit]
	gpgSign = false
[fsck]
	missingEmail = ignore
[fetch "fsck"]
	missingEmail = ignore
	zeroPaddedFilemode = ignore
	missingSpaceBeforeDate = ignore
	badDate = ignore
	badTimezone = ignore
[safe]
	directory = *
[log]
	showSignature = false
[diff]
	renames = false
[am]
	messageId = true
"""


class GitError(Exception):
    """git ended with an error; `output` is what it said."""

    def __init__(self, command: Sequence[str], output: str) -> None:
        self.output = output.strip()
        super().__init__(f"git {command[0]}: {self.output}")


@dataclass(frozen=True)
class Git:
    """git on one repository. `directory` is its .git or bare folder."""

    workspace: Workspace
    directory: Path

    def run(
        self,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        timeout_s: float = QUICK_S,
        file_limit: int | None = None,
        check: bool = True,
    ) -> str:
        """Standard output as text. Raises GitError, or InfrastructureError after `timeout_s` seconds.

        `file_limit` bounds, in bytes, each file that git may write (a fetched pack is one file).
        """

        # Not a preexec_fn: a fork of a process that holds gRPC threads (labgrid's) crashes before it reaches git.
        limit = [] if file_limit is None else ["prlimit", f"--fsize={file_limit}"]
        try:
            done = subprocess.run(
                [*limit, "git", f"--git-dir={self.directory}", *arguments],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                env={**git_environment(self.workspace), **(environment or {})},
                timeout=timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise InfrastructureError(f"git {arguments[0]} took longer than {timeout_s:.0f} s") from error
        if check and done.returncode != 0:
            raise GitError(arguments, done.stderr.decode(errors="replace"))
        return done.stdout.decode(errors="replace")

    def commit(self, name: str) -> str | None:
        """The commit that `name` stands for, or None."""
        if name.startswith("-"):
            return None
        found = self.run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}", check=False)
        return found.strip() or None

    def tree(self, commit: str) -> str:
        return self.run("rev-parse", "--verify", f"{commit}^{{tree}}").strip()

    def file(self, commit: str, path: str) -> str:
        """Text of a file in a commit. Raises GitError when there is none."""
        return self.run("cat-file", "blob", f"{commit}:{path}")


def git_environment(workspace: Workspace) -> dict[str, str]:
    settings = workspace.cache / "gitconfig"
    if not settings.exists() or settings.read_text() != _SETTINGS:
        fresh = settings.with_suffix(f".{os.getpid()}")
        fresh.write_text(_SETTINGS)
        fresh.rename(settings)
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": "/nonexistent",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": str(settings),
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_LAZY_FETCH": "1",
    }


def create_bare(workspace: Workspace, directory: Path, borrow_from: Sequence[Path] = ()) -> Git:
    """A bare repository at `directory` (existing or new) that sees the objects of `borrow_from`."""
    git = Git(workspace, directory)
    git.run("init", "--quiet", "--bare", "--template=", "--initial-branch=master")
    if borrow_from:
        alternates = directory / "objects" / "info" / "alternates"
        alternates.parent.mkdir(exist_ok=True)
        alternates.write_text("".join(f"{path / 'objects'}\n" for path in borrow_from))
    return git


def fetch(git: Git, url: str, refspecs: Sequence[str], *, private_network: bool, timeout_s: float = 3600.0) -> None:
    """Fetches over https or git, or from a local path that the operator lists; nothing else.

    Unless `private_network`, every address that the URL leads to, redirects included, must be a public one, and git
    is pinned to the address that was checked. Raises UserError for a URL that may not or cannot be fetched.
    """
    remote = resolve_remote(url, git.workspace, private_network=private_network)
    try:
        git.run(
            *remote.settings,
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            "--no-auto-maintenance",
            remote.url,
            *refspecs,
            environment=remote.environment,
            timeout_s=timeout_s,
            file_limit=_FETCH_FILE_LIMIT,
        )
    except GitError as error:
        raise UserError(f"cannot fetch {url}", excerpt=error.output, advice=_FETCH_ADVICE) from error


_FETCH_ADVICE = "Check the URL and the branch with: git ls-remote URL"


@dataclass(frozen=True)
class Remote:
    """What to hand to git: the URL, and the settings and environment that allow just this one."""

    url: str
    settings: tuple[str, ...]
    environment: Mapping[str, str]


Resolve = Callable[[str, int], list[str]]


def _addresses(host: str, port: int) -> list[str]:
    return [str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


def resolve_remote(
    url: str,
    workspace: Workspace,
    *,
    private_network: bool,
    resolve: Resolve = _addresses,
    client: httpx.Client | None = None,
) -> Remote:
    """Decides whether, and how exactly, `url` may be fetched. Raises UserError when it may not."""
    if url.startswith("/") or url.startswith("file://"):
        return _local(Path(url.removeprefix("file://")), workspace)
    parts = _checked(url)
    if parts.scheme == "git":
        address = _public_address(parts, 9418, private_network, resolve)
        host = f"[{address}]" if ":" in address else address
        # The address is pinned; the server still learns the name it was asked for.
        return Remote(
            parts._replace(netloc=f"{host}:{parts.port or 9418}").geturl(),
            ("-c", "protocol.git.allow=always"),
            {"GIT_OVERRIDE_VIRTUAL_HOST": parts.netloc},
        )
    with client or httpx.Client(timeout=30, trust_env=private_network, follow_redirects=False) as http:
        for _ in range(_REDIRECTS):
            address = _public_address(parts, 443, private_network, resolve)
            target = _redirect(http, parts)
            if target is None:
                pin = f"http.curloptResolve={parts.hostname}:{parts.port or 443}:{address}"
                settings = ("-c", "protocol.https.allow=always", *(() if private_network else ("-c", pin)))
                return Remote(parts.geturl(), settings, _proxy(private_network))
            parts = _checked(target)
            if parts.scheme != "https":
                raise UserError(f"{url} redirects to {target}, which is not https")
    raise UserError(f"{url} redirects more than {_REDIRECTS} times")


def _local(path: Path, workspace: Workspace) -> Remote:
    real = path.resolve()
    if not any(real == listed.resolve() or listed.resolve() in real.parents for listed in workspace.local_git_paths):
        listed_text = ", ".join(str(listed) for listed in workspace.local_git_paths) or "none"
        raise UserError(
            f"the local path {path} is not one that this lab may fetch from",
            advice=f"Use an https:// or git:// URL, or ask the operator to list it (listed: {listed_text}).",
        )
    return Remote(str(real), ("-c", "protocol.file.allow=always"), {})


def _checked(url: str) -> SplitResult:
    parts = urlsplit(url)
    if parts.scheme not in ("https", "git") or not parts.hostname:
        raise UserError(f"cannot fetch {url}: only https:// and git:// URLs are fetched")
    if parts.username is not None or parts.password is not None:
        raise UserError("a git URL must not contain a user name or password")
    return parts


def _public_address(parts: SplitResult, default_port: int, private_network: bool, resolve: Resolve) -> str:
    """One address of the host; all of them must be public unless `private_network`."""
    host = parts.hostname or ""
    try:
        addresses = resolve(host, parts.port or default_port)
    except (OSError, UnicodeError) as error:
        if private_network:
            return host
        raise UserError(f"cannot fetch {parts.geturl()}: no address for {host}", excerpt=str(error)) from error
    for address in addresses:
        if not private_network and not ipaddress.ip_address(address.partition("%")[0]).is_global:
            raise UserError(f"cannot fetch {parts.geturl()}: {host} is the private address {address}")
    return addresses[0]


def _redirect(client: httpx.Client, parts: SplitResult) -> str | None:
    """Where the repository's reference list redirects to, as a repository URL; None when it does not."""
    suffix = "/info/refs?service=git-upload-pack"
    asked = parts.geturl().rstrip("/") + suffix
    try:
        with client.stream("GET", asked, headers={"User-Agent": "git/2.39"}) as answer:
            status, location = answer.status_code, answer.headers.get("location", "")
    except httpx.HTTPError as error:
        raise InfrastructureError(f"cannot reach {parts.geturl()}", excerpt=str(error)) from error
    if status not in (301, 302, 303, 307, 308):
        return None
    return str(urljoin(asked, location)).removesuffix(suffix)


def _proxy(private_network: bool) -> dict[str, str]:
    """A proxy of the lab's environment serves the operator's own trees; a user's URL never goes through it."""
    names = ("https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "SSL_CERT_FILE", "GIT_SSL_CAINFO")
    return {name: os.environ[name] for name in names if private_network and name in os.environ}


def as_infrastructure(error: JobError) -> InfrastructureError:
    """The same failure as the lab's own: fetching an operator's tree is not the submitter's business."""
    failure = error.failure
    return InfrastructureError(failure.summary, excerpt=failure.excerpt, advice=failure.advice)
