"""Fetches commits from elsewhere: only from where the operator allows, and bounded whatever the other end does.

A URL is asked about before git sees it: where it redirects to, whether its certificate is known, whether it wants a
password. git is then pinned to the address that was checked, follows no redirect and asks nobody anything.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, urljoin, urlsplit

import httpx

from ..failures import InfrastructureError, JobError, UserError
from ..workspace import Workspace
from .git import Git, GitError, GitTimeout

_REDIRECTS = 5
_DEFAULT_PORTS = {"https": 443, "git": 9418}
_REFERENCES = "/info/refs?service=git-upload-pack"
_ADVICE = "Check the URL and the branch with: git ls-remote URL"
_PRIVATE_REPOSITORY_ADVICE = (
    "The lab fetches what anyone may read and never sends a password (some servers ask for one when there is no such"
    " repository). Publish the branch, or submit the series as an mbox."
)
_CA_ADVICE = (
    "If that server's certificate is signed by a CA of your own, the lab's operator makes the CA known: install it on"
    " the lab's host (update-ca-certificates), or start the lab with SSL_CERT_FILE naming a bundle that has it."
)
_PRIVATE_HOST_ADVICE = (
    "Use a public server or submit the series as an mbox; a server of the lab's own network is allowed by its"
    " operator, in WQLAB_PRIVATE_GIT_HOSTS."
)
# Of X509_verify_cert(3): not signed by a CA that this machine knows, and not the server's to mend.
_UNKNOWN_CA = {18, 19, 20, 21}


@dataclass(frozen=True)
class Limits:
    """What one fetch may cost, whatever the other end sends or does not send."""

    ask_s: float = 60.0
    """From the first question about a URL to the last answer, redirects included."""
    wall_s: float = 1800.0
    file_bytes: int = 6 << 30
    """Of each file that git writes; a fetched pack is one file."""
    memory_bytes: int | None = 4 << 30
    """Of each process: git keeps a server's list of references in memory, however long it is."""


MIRROR = Limits(wall_s=4 * 3600.0, memory_bytes=None)
"""For an operator's tree, whose first fetch is the whole history."""


def fetch(
    git: Git,
    url: str,
    refspecs: Sequence[str],
    *,
    private_network: bool,
    limits: Limits = Limits(),
    on_tick: Callable[[], None] = lambda: None,
) -> None:
    """Fetches over https or git, or from a local path that the operator lists; nothing else.

    Unless `private_network`, every address that the URL leads to, redirects included, must be a public one or belong
    to a host that the operator lists (`Workspace.private_git_hosts`). `on_tick` is called at once and about every
    second; what it raises ends the fetch. Raises UserError for a URL that may not or cannot be fetched,
    InfrastructureError when its server cannot be reached.
    """
    on_tick()
    remote = resolve_remote(url, git.workspace, private_network=private_network, ask_s=limits.ask_s)
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
        raise UserError(summary, advice="Use a server that answers faster, or submit the series as an mbox.") from error


def as_infrastructure(error: JobError) -> InfrastructureError:
    """The same failure as the lab's own: fetching an operator's tree is not the submitter's business."""
    failure = error.failure
    return InfrastructureError(failure.summary, excerpt=failure.excerpt, advice=failure.advice)


# --- may it be fetched, and how ---------------------------------------------------------------------------------


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
    ask_s: float = Limits().ask_s,
    resolve: Resolve = _addresses,
    transport: httpx.AsyncBaseTransport | None = None,
) -> Remote:
    """Decides whether, and how exactly, `url` may be fetched. Raises UserError when it may not."""
    if url.startswith("/") or url.startswith("file://"):
        return _local(Path(url.removeprefix("file://")), workspace)
    parts = _checked(url)
    if parts.scheme == "git":
        address = _allowed_address(parts, workspace, private_network, resolve)
        host = f"[{address}]" if ":" in address else address
        # The address is pinned; the server still learns the name it was asked for.
        return Remote(
            parts._replace(netloc=f"{host}:{_port(parts)}").geturl(),
            ("-c", "protocol.git.allow=always"),
            {"GIT_OVERRIDE_VIRTUAL_HOST": parts.netloc},
        )
    return asyncio.run(
        _follow(parts, workspace, private_network=private_network, ask_s=ask_s, resolve=resolve, transport=transport)
    )


async def _follow(
    parts: SplitResult,
    workspace: Workspace,
    *,
    private_network: bool,
    ask_s: float,
    resolve: Resolve,
    transport: httpx.AsyncBaseTransport | None,
) -> Remote:
    """The https repository at the end of all redirects, each of them allowed."""
    url = parts.geturl()
    client = httpx.AsyncClient(
        timeout=None,  # noqa: S113 - asyncio.timeout bounds all of it; a bound on each read would not
        verify=_certificates(workspace),
        trust_env=private_network,
        follow_redirects=False,
        transport=transport,
    )
    try:
        async with asyncio.timeout(ask_s), client:
            for _ in range(_REDIRECTS + 1):
                address = _allowed_address(parts, workspace, private_network, resolve)
                target = await _redirect(client, parts, None if private_network else address)
                if target is None:
                    return _over_https(parts, None if private_network else address, workspace)
                parts = _checked(target)
                if parts.scheme != "https":
                    raise UserError(f"{url} redirects to {target}, which is not https")
    except TimeoutError as error:
        raise InfrastructureError(f"{url} did not answer in {ask_s:.0f} s", advice=_ADVICE) from error
    raise UserError(f"{url} redirects more than {_REDIRECTS} times")


def _over_https(parts: SplitResult, address: str | None, workspace: Workspace) -> Remote:
    """`address`: the only one that git may connect to. Without it git takes the way of the operator's environment."""
    settings = ["-c", "protocol.https.allow=always", "-c", f"http.sslCAInfo={workspace.ca_file}"]
    if address is None:
        return Remote(parts.geturl(), tuple(settings), _proxy())
    host = httpx.URL(parts.geturl()).raw_host.decode("ascii")  # as curl writes it, or the pin would not hold
    if not _is_address(host):
        settings += ["-c", f"http.curloptResolve={host}:{_port(parts)}:{address}"]
    return Remote(parts.geturl(), tuple(settings), {})


def _proxy() -> dict[str, str]:
    """A proxy of the lab's environment serves the operator's own trees; a user's URL never goes through it."""
    names = ("https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY")
    return {name: os.environ[name] for name in names if name in os.environ}


def _local(path: Path, workspace: Workspace) -> Remote:
    real = path.resolve()
    if not any(real == listed.resolve() or listed.resolve() in real.parents for listed in workspace.local_git_paths):
        listed_text = ", ".join(str(listed) for listed in workspace.local_git_paths) or "none"
        raise UserError(
            f"the local path {path} is not one that this lab may fetch from",
            advice=f"Use an https:// or git:// URL, or ask the operator to list it (listed: {listed_text}).",
        )
    return Remote(str(real), ("-c", "protocol.file.allow=always"), {})


# --- URLs and addresses -----------------------------------------------------------------------------------------


def _checked(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise UserError(f"cannot fetch {url}: {error}") from error
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
        raise UserError(f"cannot fetch {url}: only https:// and git:// URLs are fetched")
    if parts.username is not None or parts.password is not None:
        raise UserError("a git URL must not contain a user name or password")
    return parts


def _port(parts: SplitResult) -> int:
    return parts.port or _DEFAULT_PORTS[parts.scheme]


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _allowed_address(parts: SplitResult, workspace: Workspace, private_network: bool, resolve: Resolve) -> str:
    """One address of the host; all of them must be public, unless `private_network` or the operator lists the host."""
    host = parts.hostname or ""
    try:
        addresses = resolve(host, _port(parts))
    except (OSError, UnicodeError) as error:
        if private_network:
            return host
        raise UserError(f"cannot fetch {parts.geturl()}: no address for {host}", excerpt=str(error)) from error
    if private_network or _is_listed(parts, workspace):
        return addresses[0]
    for address in addresses:
        if not ipaddress.ip_address(address.partition("%")[0]).is_global:
            raise UserError(
                f"cannot fetch {parts.geturl()}: {host} is the private address {address}", advice=_PRIVATE_HOST_ADVICE
            )
    return addresses[0]


def _is_listed(parts: SplitResult, workspace: Workspace) -> bool:
    """An entry without a port stands for the scheme's own port: a listed host is no leave to try all of its ports."""
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    names = {f"{host}:{_port(parts)}"}
    if _port(parts) == _DEFAULT_PORTS[parts.scheme]:
        names.add(f"{host}")
    return not names.isdisjoint(workspace.private_git_hosts)


# --- asking an https server -------------------------------------------------------------------------------------


def _certificates(workspace: Workspace) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=workspace.ca_file)
    except OSError as error:
        raise InfrastructureError(
            f"cannot read the CA certificates in {workspace.ca_file}: {error}",
            advice="SSL_CERT_FILE must name a file in PEM format; unset, the system's own is used (ca-certificates).",
        ) from error


async def _redirect(client: httpx.AsyncClient, parts: SplitResult, address: str | None) -> str | None:
    """Where the repository's list of references redirects to, as a repository URL; None when it does not.

    `address`: the only one to connect to. Raises UserError when the server shows that git will not get it either.
    """
    url = parts.geturl()
    try:
        asked = httpx.URL(url.rstrip("/") + _REFERENCES)
    except httpx.InvalidURL as error:
        raise UserError(f"cannot fetch {url}: {error}") from error
    headers = {"User-Agent": "git/2.39", "Host": asked.netloc.decode("ascii")}
    extensions = {"sni_hostname": asked.raw_host.decode("ascii")}
    target = asked if address is None else asked.copy_with(host=address.partition("%")[0])
    try:
        async with client.stream("GET", target, headers=headers, extensions=extensions) as answer:
            status, location = answer.status_code, answer.headers.get("location", "")
    except httpx.HTTPError as error:
        raise _unreachable(url, error) from error
    if status == 401:
        raise UserError(f"{url} asks for a user name and password", advice=_PRIVATE_REPOSITORY_ADVICE)
    if status == 429 or status >= 500:
        raise InfrastructureError(f"the server of {url} is in trouble: it answers with status {status}")
    if status >= 400:
        raise UserError(f"there is no git repository to fetch at {url}: status {status}", advice=_ADVICE)
    if status not in (301, 302, 303, 307, 308):
        return None
    try:
        return str(urljoin(str(asked), location)).removesuffix(_REFERENCES)
    except ValueError as error:
        raise UserError(f"{url} redirects to {location[:200]!r}: {error}") from error


def _unreachable(url: str, error: httpx.HTTPError) -> JobError:
    refused = next((cause for cause in _causes(error) if isinstance(cause, ssl.SSLCertVerificationError)), None)
    if refused is None:
        return InfrastructureError(f"cannot reach {url}", excerpt=str(error) or repr(error))
    advice = _CA_ADVICE if refused.verify_code in _UNKNOWN_CA else "The server needs a valid certificate for that name."
    return UserError(f"the certificate of {url} is not accepted: {refused.verify_message}", advice=advice)


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__
