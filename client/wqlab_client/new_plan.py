"""Create the files of a new test plan in a checkout of wqlab, from the templates in its testplans/skeleton/."""

from __future__ import annotations

import keyword
import os
import re
from pathlib import Path

from wqlab_contracts.specs.plans import RESERVED_NAMES
from wqlab_contracts.yamlfile import is_text

from .errors import UsageError

TEMPLATES = {
    "plan.yaml.in": "testplans/@NAME@/plan.yaml",
    "script.sh.in": "testplans/@NAME@/@NAME@.sh",
    "README.md.in": "testplans/@NAME@/README.md",
    "parser.py.in": "worker/wqlab_worker/measure/parsers/@MODULE@.py",
    "test_parser.py.in": "worker/tests/measure/parsers/test_@MODULE@.py",
    "recorded.txt.in": "worker/tests/measure/parsers/recorded/@NAME@-2cpu.txt",
}
"""File in SKELETON -> path of what is made of it, in the checkout."""

SKELETON = "testplans/skeleton"
COMMON = "testplans/common"
"""Scripts that each plan gets beside its own."""
LONGEST_NAME = 40
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def find_checkout(start: Path) -> Path:
    """Return the checkout of wqlab that `start` is in. Raises UsageError if it is in none."""
    start = start.absolute()
    for folder in (start, *start.parents):
        if (folder / SKELETON).is_dir():
            return folder
    raise UsageError(
        f"{start} is not in a checkout of wqlab: no {SKELETON}/ here or above",
        "a plan is code of the lab: clone the lab's repository and run this in it, or name it with --checkout",
    )


def create(checkout: Path, name: str) -> list[Path]:
    """Write the files of plan `name` and return their paths, relative to the checkout.

    Raises UsageError for a bad name, and if a file of the plan exists or cannot be written; then nothing is written.
    """
    check_name(name)
    if os.path.lexists(checkout / COMMON / f"{name}.sh"):
        raise UsageError(
            f"a plan cannot be called {name!r}: its script would replace {COMMON}/{name}.sh, which all plans get",
            "choose another name",
        )
    texts = _texts(checkout, name)
    for path in (Path("testplans") / name, *texts):
        if os.path.lexists(checkout / path):
            raise UsageError(f"{path} exists already", "choose another name; nothing was written")
    _write({checkout / path: text for path, text in texts.items()})
    return list(texts)


def check_name(name: str) -> None:
    """Raise UsageError unless `name` can be the name of a plan, and of its parser with `_` in place of `-`."""
    if name in RESERVED_NAMES:
        raise UsageError(
            f"a plan cannot be called {name!r}: that is a command of `wqlab plans`", "write `wqlab plans new NAME`"
        )
    if not _NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        raise UsageError(
            f"{name!r} cannot be the name of a plan",
            f"use lower-case letters, digits and single hyphens, a letter first, at most {LONGEST_NAME} characters: "
            "futex-wake",
        )
    if keyword.iskeyword(name):
        raise UsageError(f"a plan cannot be called {name!r}: its parser would be, and that is a word of Python")
    if not is_text(name):
        raise UsageError(
            f"a plan cannot be called {name!r}: YAML reads that word as another value than text", "choose another name"
        )


def _texts(checkout: Path, name: str) -> dict[Path, str]:
    """Return the text of each file of the plan, by its path in the checkout."""

    def filled(text: str) -> str:
        return text.replace("@NAME@", name).replace("@MODULE@", name.replace("-", "_"))

    texts = {}
    for template, target in TEMPLATES.items():
        path = checkout / SKELETON / template
        try:
            texts[Path(filled(target))] = filled(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise UsageError(
                f"{path} cannot be read: {error.strerror}", "use a complete checkout, of the release of this client"
            ) from None
    return texts


def _write(texts: dict[Path, str]) -> None:
    """Write new files, and their folders. Raises UsageError if one cannot be written; what was written is removed."""
    written: list[Path] = []
    try:
        for path, text in texts.items():
            if not path.parent.exists():
                path.parent.mkdir()
                written.append(path.parent)
            with path.open("x", encoding="utf-8") as file:
                written.append(path)
                file.write(text)
    except BaseException as error:
        for path in reversed(written):
            if path.is_dir():
                path.rmdir()
            else:
                path.unlink()
        if isinstance(error, OSError):
            raise UsageError(
                f"cannot write {error.filename or 'the files'}: {error.strerror}",
                "nothing was written; run this as the user who owns the checkout",
            ) from None
        raise
