"""Create Python environments like those of the container images, and run their programs without the checkout."""

from __future__ import annotations

import re
import subprocess
import sys
import venv
import zipfile
from collections.abc import Mapping, Sequence
from importlib.metadata import Distribution, distribution, entry_points
from pathlib import Path

from packaging.requirements import Requirement

from .composefile import ROOT

_SITE = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
_ENVIRONMENT = re.compile(r"^RUN \./environment\.sh /opt/(\w+) (.+)$", re.MULTILINE)
PACKAGES = {image: words.split() for image, words in _ENVIRONMENT.findall((ROOT / "deploy/Dockerfile").read_text())}
"""Image -> folders of the packages that deploy/Dockerfile installs in it."""


def make_environment(image: str, folder: Path) -> None:
    """Create a Python environment in `folder` with what the image has: our packages from wheels, others as links."""
    venv.create(folder, symlinks=True)
    site, wheels = folder / _SITE, folder / "wheels"
    for package in PACKAGES[image]:
        build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(wheels)]
        subprocess.run(build, cwd=ROOT / package, check=True, capture_output=True)
    for wheel in wheels.iterdir():
        zipfile.ZipFile(wheel).extractall(site)
    own = {f"wqlab-{package}" for package in PACKAGES[image]}
    # wqlab-lab's own dependencies are those of `make up`, which containers replace (deploy/environment.sh).
    closure = _closure(name for name in sorted(own - {"wqlab-lab"}))
    for found in closure.values():
        if found.name not in own:
            _link(found, site)
    scripts = {each.name: each for each in entry_points(group="console_scripts")}
    for name, script in scripts.items():
        if script.dist and script.dist.name in {*closure, *own}:
            function = script.attr.split(".")[0]
            program = folder / "bin" / name
            call = f"from {script.module} import {function}\nsys.exit({script.attr}())"
            program.write_text(f"#!/opt/{image}/bin/python\nimport sys\n{call}\n")
            program.chmod(0o755)
    init = folder / "bin" / "wqlab-init"
    init.write_bytes((ROOT / "deploy/init.sh").read_bytes())
    init.chmod(0o755)


def command(
    image: str,
    environment: Path,
    words: Sequence[str],
    variables: Mapping[str, str],
    mounts: Mapping[Path, str],
    network: bool = False,
) -> list[str]:
    """Return a bwrap command that runs `words` with the image's environment and data.

    `mounts`: folder of this machine -> writable folder of the container. `network`: share this machine's.
    """
    installed = Path(sys.prefix) / "lib"
    arguments = ["bwrap", "--unshare-pid", "--die-with-parent", "--clearenv", "--ro-bind", "/usr", "/usr"]
    arguments += [] if network else ["--unshare-net"]
    for name in ("bin", "sbin", "lib", "lib64"):
        arguments += ["--symlink", f"usr/{name}", f"/{name}"]
    arguments += [
        "--ro-bind",
        "/etc",
        "/etc",
        "--ro-bind",
        "/var/lib/dpkg",
        "/var/lib/dpkg",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--tmpfs",
        "/tmp",
    ]
    arguments += ["--ro-bind", str(environment), f"/opt/{image}", "--ro-bind", str(installed), str(installed)]
    for name in ("device-types", "kernels", "testplans", "intake"):
        arguments += ["--ro-bind", str(ROOT / name), f"/srv/wqlab/{name}"]
    for source, target in mounts.items():
        arguments += ["--bind", str(source), target]
    image_variables = {"PATH": f"/opt/{image}/bin:/usr/bin:/usr/sbin", "HOME": "/tmp", "LANG": "C.UTF-8", "TZ": "UTC"}
    image_variables |= {"WQLAB_STATE": "/var/lib/wqlab", "WQLAB_CACHE": "/var/cache/wqlab"}
    image_variables |= {"WQLAB_DATA_DIR": "/srv/wqlab", "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    for name, value in {**image_variables, **variables}.items():
        arguments += ["--setenv", name, value]
    return [*arguments, "--chdir", "/var/lib/wqlab", "--", *words]


def _closure(names: object) -> dict[str, Distribution]:
    """Return name -> distribution of these distributions and of all that they need here."""
    found: dict[str, Distribution] = {}
    pending = [(name, frozenset[str]()) for name in names]  # type: ignore[attr-defined]
    seen = set(pending)
    while pending:
        name, extras = pending.pop()
        found[_normal(name)] = distribution(name)
        for text in distribution(name).requires or []:
            needed = Requirement(text)
            if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in extras or {""}):
                each = (_normal(needed.name), frozenset(needed.extras))
                if each not in seen:
                    seen.add(each)
                    pending.append(each)
    return found


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _link(found: Distribution, site: Path) -> None:
    """Link the files of a distribution, and the compiled modules beside them, into `site`."""
    for file in found.files or []:
        source = Path(str(found.locate_file(file)))
        if ".." in file.parts or "__pycache__" in file.parts:
            continue
        target = site / file
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            target.symlink_to(source)
        compiled = source.parent / "__pycache__"
        if (
            source.suffix == ".py"
            and file.parent.parts
            and compiled.is_dir()
            and not (target.parent / "__pycache__").exists()
        ):
            (target.parent / "__pycache__").symlink_to(compiled)
