"""Build the documentation site from docs/, once per content; the result is kept in the cache.

    python -m wqlab_lab.documentation build     build it unless it is there; print its folder
    python -m wqlab_lab.documentation check     build it in a temporary folder; status 1 for a dead link

MkDocs renders the pages (mkdocs.yml). The site needs nothing from other hosts: the colours, the font and the theme
switch are those of web/, and the API reference is Swagger UI from the packages of web/.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from . import web

_SOURCES = ("mkdocs.yml", "README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
_SOURCE_FOLDERS = ("docs", "benchmarks", "kernels/modules")
_OF_WEB = {
    "src/styles/tokens.css": "tokens.css",
    "public/theme.js": "theme.js",
    "public/favicon.svg": "favicon.svg",
}
"""File of web/ -> name among the site's assets."""
_OF_PACKAGES = {
    "swagger-ui-dist/swagger-ui-bundle.js": "swagger-ui-bundle.js",
    "swagger-ui-dist/swagger-ui.css": "swagger-ui.css",
    "@fontsource-variable/ibm-plex-sans/files/ibm-plex-sans-latin-wght-normal.woff2": "ibm-plex-sans.woff2",
}
"""File of web/'s npm packages -> name among the site's assets."""


class DocumentationError(Exception):
    """MkDocs failed, for a dead link for example; the text is its output."""


def site(cache: Path, checkout: Path = web.CHECKOUT) -> Path:
    """Return the folder where the site built from this content is, or will be."""
    digest = hashlib.sha256()
    files = [checkout / name for name in _SOURCES]
    files += [path for folder in _SOURCE_FOLDERS for path in sorted((checkout / folder).rglob("*")) if path.is_file()]
    files += [checkout / "web" / name for name in (*_OF_WEB, "package-lock.json")]
    for path in files:
        if path.suffix != ".pyc":
            digest.update(f"{path.relative_to(checkout)}\0{path.stat().st_size}\0".encode())
            digest.update(path.read_bytes())
    return cache / "docs" / f"site-{digest.hexdigest()[:16]}"


def build(cache: Path, checkout: Path = web.CHECKOUT) -> Path:
    """Build the site unless it is in the cache; return its folder. Raises DocumentationError and web.WebError."""
    target = site(cache, checkout)
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="build-", dir=target.parent) as folder:
        made = Path(folder) / "site"
        _render(made, checkout)
        packages = web.packages(cache, checkout) / "node_modules"
        for source, name in _OF_WEB.items():
            shutil.copy(checkout / "web" / source, made / "assets" / name)
        for source, name in _OF_PACKAGES.items():
            shutil.copy(packages / source, made / "assets" / name)
        if not target.is_dir():  # another process may have been faster
            made.rename(target)
    return target


def _render(folder: Path, checkout: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "-f", str(checkout / "mkdocs.yml"), "-d", str(folder)]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}  # the hooks' folder may belong to another user
    result = subprocess.run(
        command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if result.returncode:
        lines = [line for line in result.stdout.splitlines() if not line.startswith("INFO")]
        raise DocumentationError("\n".join(["the documentation cannot be built:", *lines]))


def main(arguments: list[str]) -> int:
    match arguments:
        case ["build"]:
            print(build(Path(os.environ["WQLAB_CACHE"]).absolute()))
        case ["check"]:
            with tempfile.TemporaryDirectory() as folder:
                _render(Path(folder) / "site", web.CHECKOUT)
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (DocumentationError, web.WebError) as error:
        sys.exit(str(error))
