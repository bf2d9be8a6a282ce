"""Write `repro.sh`: a script that boots both kernels of a comparison again, in plain QEMU and without wqlab."""

from __future__ import annotations

import base64
import gzip
import io
import re
import shlex
import tarfile
from collections.abc import Mapping
from pathlib import Path

from wqlab_bench import qemu
from wqlab_contracts.enums import Arm
from wqlab_contracts.messages import RunJob
from wqlab_contracts.text import clean
from wqlab_worker.build.modules import files_for_kernel
from wqlab_worker.measure.script_calls import calls

from .state import CHANGES, IMAGE, INITRAMFS, Plan, StateFolder

NAME = "repro.sh"
_TEMPLATE = (Path(__file__).parent / "repro.sh.in").read_text()


def script(folder: StateFolder, plan: Plan, headline: str) -> str:
    """Return the script. It runs in the folder, of which it uses the kernels, their initramfs and the key.

    It makes each call of the first block once, without the monitor that runs beside warm-ups and traced repetitions.
    """
    job = plan.job
    fields = {
        "@ARMS@": " ".join(job.kernels),
        "@PLAN@": job.plan.name,
        "@HEADLINE@": _comment(headline, "#     "),
        "@KERNELS@": _comment("\n".join(line for arm in job.kernels for line in _about(plan, arm)), "# "),
        "@CHECKS@": "\n".join(
            f"check {job.kernels[arm].image.sha256} {shlex.quote(job.kernels[arm].image.name)}" for arm in job.kernels
        ),
        "@BOOT@": "\n".join(_boot(folder, plan, arm) for arm in job.kernels),
        "@SCRIPT@": shlex.quote(job.plan.script),
        "@CALLS@": "\n".join(_call(each.action, each.environment) for each in calls(job, job.blocks[0].block)),
        "@FILES@": "\n".join(_files(folder, job, arm) for arm in job.kernels),
    }
    # All fields in one pass, because the text of a kernel may look like a field.
    return re.sub("|".join(fields), lambda match: fields[match[0]], _TEMPLATE)


def _comment(text: str, before: str) -> str:
    return "\n".join(f"{before}{clean(line)}" for line in text.splitlines())


def _about(plan: Plan, arm: Arm) -> list[str]:
    note, kernel = plan.kernels[arm], plan.job.kernels[arm]
    lines = [f"{arm.value}: {kernel.release}, build-id {kernel.build_id_gnu}, {note.commit or note.name}"]
    if note.reproducer:
        changes = f" changed by kernels/{arm.value}/{CHANGES}" if note.has_changes else ""
        lines.append(f"  to build it, with that commit{changes} in linux/ and kernels/{arm.value}/config as config:")
        lines.append(f"  {note.reproducer}")
    return lines


def _boot(folder: StateFolder, plan: Plan, arm: Arm) -> str:
    """Return the branch of a `case` that starts the kernel of an arm."""
    arguments = [
        f"console={plan.job.device.boot.console_device}",
        "panic=0",
        "wqlab.token=repro",
        f"wqlab.ssh={_public_key(folder)}",
        plan.job.device.boot.kernel_arguments,
    ]
    line = " ".join(word for word in arguments if word)
    system = qemu.System(_path(folder, arm, IMAGE), _path(folder, arm, INITRAMFS), line)
    if plan.accelerator is None:
        words = [f"--initrd={system.initramfs}", f"--command-line={line}"]
        load = shlex.join(["kexec", "-l", str(system.kernel), *words])
        return f"\t{arm.value}) by_hand {shlex.quote(load)} ;;"
    firmware = qemu.Firmware(folder.path / "firmware")
    command = qemu.guest_command(plan.device_type, system, "PORT", plan.accelerator, firmware, ["-no-reboot"])
    words = [shlex.quote(word.replace(f"{folder.path}/", "")) for word in command]
    options = "".join(f" \\\n\t\t{word}" if word.startswith("-") else f" {word}" for word in words)
    options = options.strip().replace("PORT", '"$port"')
    return f'\t{arm.value})\n\t\t{options} \\\n\t\t-serial "file:repro/$1.console" &\n\t\t;;'


def _path(folder: StateFolder, arm: Arm, name: str) -> Path:
    return folder.kernel(arm, name).relative_to(folder.path)


def _public_key(folder: StateFolder) -> str:
    return folder.key.with_suffix(".pub").read_text().split()[1]


def _call(action: str, environment: Mapping[str, str]) -> str:
    return shlex.join(["call", action, *(f"{name}={value}" for name, value in environment.items())])


def _files(folder: StateFolder, job: RunJob, arm: Arm) -> str:
    """Return the branch of a `case` that prints an archive of the files that the plan needs on the device."""
    files = {name: text.encode() for name, text in job.files.items()}
    files |= files_for_kernel(job, job.kernels[arm], folder.artifact)
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, data in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o755
            archive.addfile(entry, io.BytesIO(data))
    text = base64.encodebytes(gzip.compress(stream.getvalue(), mtime=0)).decode()
    return f"\t{arm.value}) base64 -d <<'END' ;;\n{text}END"
