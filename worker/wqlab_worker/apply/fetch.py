"""Fetch commits from git servers that the operator allows, with bounded time, memory and disk space.

A URL is checked before git sees it: its redirects, its certificate, and whether it needs a password. git then connects
only to the checked address, follows no redirects and prompts for nothing.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, urljoin, urlsplit

import httpx

from wqlab_contracts.hosts import find_private, host_problem, is_address

from ..addresses import Resolve, resolve_host
from ..failures import InfrastructureError, JobError, UserError
from ..tls import ssl_context
from ..workspace import Workspace
from .git import Git, GitError, GitTimeout

_REDIRECTS = 5
_DEFAULT_PORTS = {"https": 443, "http": 80, "git": 9418}
_REFERENCES = "/info/refs?service=git-upload-pack"
_ADVICE = "Check the URL and the branch with: git ls-remote URL"
_PRIVATE_REPOSITORY_ADVICE = (
    "The lab fetches only public repositories and never sends a password. (Some servers ask for one if the repository"
    " does not exist.) Publish the branch, or submit the series as an mbox."
)
_CA_ADVICE = (
    "If a private CA signed the server's certificate, the operator must make the CA known to the lab: install it on the"
    " lab's host (update-ca-certificates), or start the lab with SSL_CERT_FILE set to a bundle that has it."
)
_PRIVATE_HOST_ADVICE = (
    "Use a public server, or submit the series as an mbox. The lab's operator can allow a server of the lab's own"
    " network in WQLAB_PRIVATE_GIT_HOSTS."
)
# Errors of X509_verify_cert(3) for a certificate of a CA that this machine does not know; the server cannot fix these.
_UNKNOWN_CA = {18, 19, 20, 21}


@dataclass(frozen=True)
class Limits:
    """Limits on one fetch, whatever the server sends or does not send."""

    check_s: float = 60.0
    """Time for the check of a URL, including all redirects."""
    wall_s: float = 1800.0
    """Time for the fetch itself."""
    file_bytes: int = 6 << 30
    """Size of each file that git writes; a fetched pack is one file."""
    memory_bytes: int | None = 4 << 30
    """Memory of each process; git keeps a server's list of references in memory, however long it is. None: no limit."""


MIRROR_LIMITS = Limits(wall_s=4 * 3600.0, memory_bytes=None)
"""Limits for an operator's tree, whose first fetch transfers the whole history."""


def fetch(
    git: Git,
    url: str,
    refspecs: Sequence[str],
    *,
    private_network: bool,
    limits: Limits = Limits(),
    on_tick: Callable[[], None] = lambda: None,
    http: bool = False,
    options: Sequence[str] = (),
) -> None:
    """Fetch `refspecs` over https or git, or from a local path that the operator lists; `http` also allows http.

    `options` are further options of git-fetch(1).

    Unless `private_network` is True, every address of the URL and its redirects must be public or belong to a host that
    the operator lists (`Workspace.private_git_hosts`). `on_tick` is called at once and then about every second; an
    exception from it ends the fetch. Raises UserError if the URL may not or cannot be fetched, InfrastructureError if
    its server cannot be reached.
    """
    on_tick()
    remote = resolve_remote(url, git.workspace, private_network=private_network, check_s=limits.check_s, http=http)
    try:
        git.run(
            *remote.settings,
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            "--no-auto-maintenance",
            *options,
            remote.url,
            *refspecs,
            environment=remote.environment,
            timeout_s=limits.wall_s,
            bounds=(
                f"--fsize={limits.file_bytes}",
                *(() if limits.memory_bytes is None else (f"--data={limits.memory_bytes}",)),
            ),
            on_tick=on_tick,
        )
    except GitError as error:
        raise UserError(f"cannot fetch {url}", excerpt=error.output, advice=_ADVICE) from error
    except GitTimeout as error:
        summary = f"fetching {url} took longer than {limits.wall_s:.0f} s"
        raise UserError(summary, advice="Use a faster server, or submit the series as an mbox.") from error


def as_infrastructure(error: JobError) -> InfrastructureError:
    """Return the same failure as an InfrastructureError, for an operator's tree, which the submitter cannot change."""
    failure = error.failure
    return InfrastructureError(failure.summary, excerpt=failure.excerpt, advice=failure.advice)


# --- whether and how a URL may be fetched -----------------------------------------------------------------------


@dataclass(frozen=True)
class Remote:
    """Arguments for git: the URL, and the settings and environment that allow only this URL."""

    url: str
    settings: tuple[str, ...]
    environment: Mapping[str, str]


def resolve_remote(
    url: str,
    workspace: Workspace,
    *,
    private_network: bool,
    check_s: float = Limits().check_s,
    resolve: Resolve = resolve_host,
    transport: httpx.AsyncBaseTransport | None = None,
    http: bool = False,
) -> Remote:
    """Check whether `url` may be fetched and return how. Raises UserError if it may not be fetched.

    `check_s` bounds the check, in seconds. `http` allows http URLs, for servers of the lab's own network. Raises
    InfrastructureError if the server does not answer.
    """
    if url.startswith("/") or url.startswith("file://"):
        return _local_remote(Path(url.removeprefix("file://")), workspace)
    parts = _split_url(url, http=http)
    if parts.scheme == "git":
        address = _allowed_address(parts, workspace, private_network, resolve)
        host = f"[{address}]" if ":" in address else address
        # git connects to the checked address; the server still gets the host name.
        return Remote(
            parts._replace(netloc=f"{host}:{_port(parts)}").geturl(),
            ("-c", "protocol.git.allow=always"),
            {"GIT_OVERRIDE_VIRTUAL_HOST": parts.netloc},
        )
    return asyncio.run(
        _follow_redirects(
            parts,
            workspace,
            private_network=private_network,
            check_s=check_s,
            resolve=resolve,
            transport=transport,
            http=http,
        )
    )


async def _follow_redirects(
    parts: SplitResult,
    workspace: Workspace,
    *,
    private_network: bool,
    check_s: float,
    resolve: Resolve,
    transport: httpx.AsyncBaseTransport | None,
    http: bool,
) -> Remote:
    """Return the repository at the end of all redirects, each of which must be allowed."""
    url = parts.geturl()
    client = httpx.AsyncClient(
        timeout=None,  # noqa: S113 - asyncio.timeout bounds the whole exchange; a timeout of each read would not
        verify=ssl_context(workspace),
        trust_env=private_network,
        follow_redirects=False,
        transport=transport,
    )
    try:
        async with asyncio.timeout(check_s), client:
            for _ in range(_REDIRECTS + 1):
                address = _allowed_address(parts, workspace, private_network, resolve)
                target = await _redirect_target(client, parts, None if private_network else address)
                if target is None:
                    return _web_remote(parts, None if private_network else address, workspace)
                parts = _split_url(target, http=http)
                if parts.scheme == "git":
                    raise UserError(f"{url} redirects to {target}, which is not https")
    except TimeoutError as error:
        raise InfrastructureError(f"{url} did not answer within {check_s:.0f} s", advice=_ADVICE) from error
    raise UserError(f"{url} redirects more than {_REDIRECTS} times")


def _web_remote(parts: SplitResult, address: str | None, workspace: Workspace) -> Remote:
    """Return an https or http Remote.

    git connects only to `address`, or if it is None through the operator's proxy, if any.
    """
    settings = ["-c", f"protocol.{parts.scheme}.allow=always", "-c", f"http.sslCAInfo={workspace.ca_file}"]
    if address is None:
        return Remote(parts.geturl(), tuple(settings), _proxy_environment())
    host = httpx.URL(parts.geturl()).raw_host.decode(
        "ascii"
    )  # must be spelled as curl spells it, or the setting has no effect
    if not is_address(host):
        settings += ["-c", f"http.curloptResolve={host}:{_port(parts)}:{address}"]
    return Remote(parts.geturl(), tuple(settings), {})


def _proxy_environment() -> dict[str, str]:
    """Return the proxy variables of the lab's environment. Only operators' trees are fetched through the proxy."""
    names = ("https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY")
    return {name: os.environ[name] for name in names if name in os.environ}


def _local_remote(path: Path, workspace: Workspace) -> Remote:
    real = path.resolve()
    if not any(real == listed.resolve() or listed.resolve() in real.parents for listed in workspace.local_git_paths):
        listed_text = ", ".join(str(listed) for listed in workspace.local_git_paths) or "none"
        raise UserError(
            f"this lab may not fetch from the local path {path}",
            advice=f"Use an https:// or git:// URL, or ask the operator to list it (listed: {listed_text}).",
        )
    return Remote(str(real), ("-c", "protocol.file.allow=always"), {})


# --- URLs and addresses -----------------------------------------------------------------------------------------


def _split_url(url: str, *, http: bool = False) -> SplitResult:
    """Split a URL. Raises UserError if it is not an https or git URL or has a user name or password.

    `http` also allows http URLs.
    """
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise UserError(f"cannot fetch {url}: {error}") from error
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname or (parts.scheme == "http" and not http):
        raise UserError(f"cannot fetch {url}: only https:// and git:// URLs are allowed")
    if parts.username is not None or parts.password is not None:
        raise UserError("a git URL must not contain a user name or password")
    return parts


def _port(parts: SplitResult) -> int:
    return parts.port or _DEFAULT_PORTS[parts.scheme]


def _allowed_address(parts: SplitResult, workspace: Workspace, private_network: bool, resolve: Resolve) -> str:
    """Return an address of the host. Raises UserError if the host may not be fetched from.

    All addresses must be public, unless `private_network` is True or the operator lists the host.
    """
    host = parts.hostname or ""
    is_allowed = private_network or _is_listed(parts, workspace)
    if not is_allowed and (problem := host_problem(host)) is not None:
        raise UserError(f"cannot fetch {parts.geturl()}: {problem}")
    try:
        addresses = resolve(host, _port(parts))
    except (OSError, UnicodeError) as error:
        if private_network:
            return host
        raise UserError(f"cannot fetch {parts.geturl()}: no address for {host}", excerpt=str(error)) from error
    if is_allowed:
        return addresses[0]
    if (private := find_private(addresses)) is not None:
        raise UserError(
            f"cannot fetch {parts.geturl()}: {host} is the private address {private}", advice=_PRIVATE_HOST_ADVICE
        )
    return addresses[0]


def _is_listed(parts: SplitResult, workspace: Workspace) -> bool:
    """Return True if the operator lists the host and port.

    An entry without a port allows only the scheme's default port.
    """
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    names = {f"{host}:{_port(parts)}"}
    if _port(parts) == _DEFAULT_PORTS[parts.scheme]:
        names.add(f"{host}")
    return not names.isdisjoint(workspace.private_git_hosts)


# --- checking an https server -----------------------------------------------------------------------------------


async def _redirect_target(client: httpx.AsyncClient, parts: SplitResult, address: str | None) -> str | None:
    """Return the URL of the repository to which the server redirects; None if it does not redirect.

    Connects only to `address` if it is not None. Raises UserError if the server's answer shows that git cannot fetch
    the repository either.
    """
    url = parts.geturl()
    try:
        request_url = httpx.URL(url.rstrip("/") + _REFERENCES)
    except httpx.InvalidURL as error:
        raise UserError(f"cannot fetch {url}: {error}") from error
    headers = {"User-Agent": "git/2.39", "Host": request_url.netloc.decode("ascii")}
    extensions = {"sni_hostname": request_url.raw_host.decode("ascii")}
    target = request_url if address is None else request_url.copy_with(host=address.partition("%")[0])
    try:
        async with client.stream("GET", target, headers=headers, extensions=extensions) as answer:
            status, location = answer.status_code, answer.headers.get("location", "")
    except httpx.HTTPError as error:
        raise _connection_error(url, error) from error
    if status == 401:
        raise UserError(f"{url} asks for a user name and password", advice=_PRIVATE_REPOSITORY_ADVICE)
    if status == 429 or status >= 500:
        raise InfrastructureError(f"the server of {url} answers with error status {status}")
    if status >= 400:
        raise UserError(f"there is no git repository to fetch at {url}: status {status}", advice=_ADVICE)
    if status not in (301, 302, 303, 307, 308):
        return None
    try:
        return str(urljoin(str(request_url), location)).removesuffix(_REFERENCES)
    except ValueError as error:
        raise UserError(f"{url} redirects to {location[:200]!r}: {error}") from error


def _connection_error(url: str, error: httpx.HTTPError) -> JobError:
    rejected = next((cause for cause in _causes(error) if isinstance(cause, ssl.SSLCertVerificationError)), None)
    if rejected is None:
        return InfrastructureError(f"cannot reach {url}", excerpt=str(error) or repr(error))
    advice = _CA_ADVICE if rejected.verify_code in _UNKNOWN_CA else "The server needs a valid certificate for its name."
    return UserError(f"the certificate of {url} is not accepted: {rejected.verify_message}", advice=advice)


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__
