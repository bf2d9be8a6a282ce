"""Run a Docker Engine from Debian 13's packages for tests."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from .composefile import ROOT

SUITES = {"debian:12": "bookworm", "debian:sid": "sid"}
"""Base image without its digest -> Debian suite, from whose packages it is made if no registry can be reached."""
_CA = Path("/etc/ssl/certs/ca-certificates.crt")
_START_S = 600.0
"""Longest start of an engine with containers on a busy machine."""


class EngineError(AssertionError):
    """A command ended with an error; the message has its output."""


class Engine:
    """A Docker Engine from Debian's packages, whose images, volumes and files are in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._daemon: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the engine and wait until it answers. Raises EngineError."""
        started = self.folder / "started"
        started.unlink(missing_ok=True)
        self._daemon = subprocess.Popen(["bash", str(Path(__file__).with_name("engine.sh")), str(self.folder)])
        deadline = time.monotonic() + _START_S
        while not started.exists() or self._call(["docker", "version"]).returncode:
            if self._daemon.poll() is not None or time.monotonic() > deadline:
                log = self.folder / "dockerd.log"
                raise EngineError(f"the engine does not start:\n{log.read_text()[-3000:] if log.exists() else ''}")
            time.sleep(0.5)  # the engine has no event for its first answer

    def stop(self) -> None:
        """Stop the engine, and with it every container, which it starts again at its next start."""
        if self._daemon is not None:
            os.kill(self._first_process(), signal.SIGTERM)
            self._daemon.wait()
            self._daemon = None

    def run(self, *command: str, folder: str = ".") -> str:
        """Run a command where the engine is, in a folder below `self.folder`, and return its output.

        Raises EngineError if it fails.
        """
        result = self._call(command, folder)
        if result.returncode:
            # Compose prints the end of a build that failed on standard output.
            output = (result.stdout + result.stderr).decode(errors="replace")
            raise EngineError(f"{' '.join(command)} ended with {result.returncode}:\n{output[-6000:]}")
        return result.stdout.decode(errors="replace")

    def failure(self, *command: str, folder: str = ".") -> str:
        """Run a command that must fail, and return its output."""
        result = self._call(command, folder)
        assert result.returncode, f"{' '.join(command)} succeeded"
        return (result.stdout + result.stderr).decode(errors="replace")

    def provide_base(self, dockerfile: Path) -> dict[str, str]:
        """Pull the base image that a Dockerfile names; make one from packages if no registry can be reached.

        Return the variables of .env that name the image: none if it is the Dockerfile's. Raises EngineError if the
        registry has no image with this digest.
        """
        [(variable, base)] = re.findall(r"^ARG (WQLAB_DEBIAN\w*)=(\S+)$", dockerfile.read_text(), re.MULTILINE)
        pulled = self._call(["docker", "pull", base])
        if not pulled.returncode:
            return {}
        reason = pulled.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        if "manifest unknown" in reason:
            raise EngineError(f"{dockerfile}: {reason}")
        image = base.partition("@")[0]
        print(f"{base} was not pulled ({reason}): {variable}={image}, made from Debian's packages")
        if not self.run("docker", "images", "--quiet", image).strip():
            self._make_base(image)
        return {variable: image}

    def _make_base(self, image: str) -> None:
        suite, archive = SUITES[image], self.folder / "base.tar"
        # Images need the certificate authorities of this machine, through which it may reach a registry. The mirror may
        # be a snapshot with expired metadata.
        command = ["mmdebstrap", "--quiet", "--variant=minbase", "--include=ca-certificates"]
        command += ['--aptopt=Acquire::Check-Valid-Until "false"', f"--customize-hook=copy-in {_CA} {_CA.parent}"]
        subprocess.run([*command, suite, str(archive), *_apt_sources(suite)], check=True)
        self.run("docker", "import", "/run/host/base.tar", image)
        archive.unlink()

    def _call(self, command: Sequence[str], folder: str = ".") -> subprocess.CompletedProcess[bytes]:
        inside = ["sh", "-c", 'cd "/run/host/$0" && exec "$@"', folder, *command]
        # The same words as a person types, so nothing but PATH and proxies.
        kept = {name: value for name, value in os.environ.items() if name.endswith("_proxy")}
        return subprocess.run(
            ["nsenter", "--target", str(self._first_process()), "--mount", "--pid", "--wd=/", "--", *inside],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", **kept},
        )

    def _first_process(self) -> int:
        """Return the process id of the engine, as this machine sees it."""
        assert self._daemon is not None, "the engine has not been started"
        pid = self._daemon.pid
        return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def unavailable_reason() -> str:
    """Return the reason why this machine cannot run the engine; an empty string if it can."""
    if os.geteuid():
        return "an engine needs root: run lab/test-containers.sh with sudo or as root"
    for program in ("mmdebstrap", "nsenter", "rsync"):
        if shutil.which(program) is None:
            return f"the program {program} is missing"
    tried = subprocess.run(
        ["unshare", "--mount", "sh", "-c", "mount -t tmpfs none /mnt && mkdir /mnt/l /mnt/u /mnt/w /mnt/m && "
         "mount -t overlay -o lowerdir=/mnt/l,upperdir=/mnt/u,workdir=/mnt/w none /mnt/m"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return f"the kernel mounts no overlay: {tried.stderr.strip()}" if tried.returncode else ""


def _apt_sources(suite: str) -> list[str]:
    """Return mmdebstrap's sources: this machine's for its own release, else a line with its main mirror."""
    if suite == SUITES["debian:12"]:
        given = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("debian.*"))]
        return [str(path) for path in given if path.exists() and path.read_text().strip()]
    sites = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages"],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.split()
    [site, *_] = [site for site in sites if "debian" in site and "security" not in site and "snapshot" not in site]
    return [f"deb {site} {suite} main"]


def clone(target: Path) -> None:
    """Copy the files of the checkout that a commit of everything would have, as a new clone has them."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
    ).stdout
    subprocess.run(
        ["rsync", "--archive", "--from0", "--files-from=-", "--ignore-missing-args", f"{ROOT}/", f"{target}/"],
        input=listed,
        check=True,
    )
