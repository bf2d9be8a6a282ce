"""Print how many lines the repository has, by room and kind.

Kinds: `production` (code, scripts and data that the lab uses), `tests`, `goldens` (expected outputs of tests), `docs`,
and `generated` (what a tool writes from other files). Only files that git tracks are counted, and no pictures.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import PurePosixPath

KINDS = ("production", "tests", "goldens", "docs", "generated")
GENERATED = {"package-lock.json", "openapi.json", "requirements.txt"}
"""Names of files that `make lock`, `make openapi` and npm write."""
PICTURES = {".png", ".svg", ".ico", ".woff2", ".gz"}


def kind(path: PurePosixPath) -> str:
    """Return the kind of a file from its path."""
    if path.name in GENERATED:
        return "generated"
    if "golden" in path.parts:
        return "goldens"
    if "tests" in path.parts or ".test." in path.name or path.name == "conftest.py":
        return "tests"
    return "docs" if path.suffix == ".md" or path.parts[0] == "docs" else "production"


def room(path: PurePosixPath) -> str:
    """Return the top-level folder of a file; in worker/ the package, such as worker/wqlab_bench."""
    if len(path.parts) == 1:
        return "."
    if path.parts[0] == "worker" and path.parts[1].startswith("wqlab_"):
        return f"worker/{path.parts[1]}"
    return path.parts[0]


def main() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], check=True, capture_output=True, text=True).stdout
    lines: Counter[tuple[str, str]] = Counter()
    for name in filter(None, listed.split("\0")):
        path = PurePosixPath(name)
        if path.suffix not in PICTURES:
            try:
                with open(name, "rb") as file:  # noqa: PTH123
                    lines[room(path), kind(path)] += sum(1 for _ in file)
            except FileNotFoundError:  # deleted, and not yet in the index
                continue
    rooms = sorted({name for name, _ in lines}, key=lambda name: -sum(lines[name, each] for each in KINDS))
    print(f"{'':20}" + "".join(f"{each:>12}" for each in KINDS))
    for name in rooms:
        print(f"{name:20}" + "".join(f"{lines[name, each] or '':>12}" for each in KINDS))
    print(f"{'total':20}" + "".join(f"{sum(lines[name, each] for name in rooms):>12}" for each in KINDS))


if __name__ == "__main__":
    main()
