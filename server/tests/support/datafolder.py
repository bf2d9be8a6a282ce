"""A small data folder: one tree, two recipes, a device type with two devices and one with one, three plans."""

from __future__ import annotations

import shutil
from pathlib import Path

ARCHIVES = """\
archives:
  - name: lore
    summary: all lists
    url: https://lore.example.org/all/{message_id}/
    search: https://lore.example.org/all/?x=m&t=1&q={query}
"""
FILES = {
    "intake/archives.yaml": ARCHIVES,
    "kernels/trees.yaml": """\
default: lab-tree
trees:
  - {name: lab-tree, summary: the tests' tree, url: "https://git.example.org/linux.git"}
""",
    "kernels/recipes/measure.yaml": "name: measure\nsummary: small kernel\nfragments: [base]\n",
    "kernels/recipes/debug.yaml": "name: debug\nsummary: finds faults\nfragments: [base]\nfigures: false\n",
    "kernels/fragments/base.config": "CONFIG_SMP=y\n",
    "device-types/device.yaml": """\
name: device
summary: two devices with two L3 domains
arch: x86_64
topology: {sockets: 1, l3_per_socket: 2, cores_per_l3: 2, threads_per_core: 1}
emulation: {memory_mib: 512}
units: [{name: device-1}, {name: device-2}]
""",
    "device-types/single.yaml": """\
name: single
summary: one device
arch: x86_64
topology: {sockets: 1, l3_per_socket: 1, cores_per_l3: 2, threads_per_core: 1}
emulation: {memory_mib: 512}
units: [{name: single-1}]
""",
    "testplans/locks/plan.yaml": """\
name: locks
summary: counts locks
script: run.sh
parser: locks
reference_setting: ""
scenarios: [{name: flush, summary: flushes}]
hardware:
  settings: [""]
  blocks: 2
  repetitions: {warmup: 1, untraced: 1, traced: 1}
emulated:
  settings: [""]
  blocks: 2
  repetitions: {warmup: 1, untraced: 1, traced: 1}
metrics:
  - {name: locks_per_flush, summary: locks, unit: locks, scale: difference, direction: lower_is_better,
     class: mechanism, taken_from: traced, role_emulated: primary}
  - {name: throughput, summary: speed, unit: MB/s, scale: ratio, direction: higher_is_better,
     class: performance, taken_from: untraced, role_hardware: primary, role_emulated: secondary}
""",
    "testplans/locks/run.sh": "#!/bin/sh\n",
    "testplans/affinity/plan.yaml": """\
name: affinity
summary: compares scopes
script: run.sh
parser: affinity
reference_setting: scope=system
axes: [{name: scope, values: [system, cache, cpu]}]
scenarios: [{name: high, summary: many jobs}]
hardware:
  settings: [scope=system, scope=cache, scope=cpu]
  blocks: 3
emulated:
  settings: [scope=system, scope=cache, scope=cpu]
  blocks: 3
metrics:
  - {name: share_l3, summary: share on the queueing L3, unit: percent, scale: difference,
     direction: higher_is_better, class: mechanism, taken_from: traced, role_emulated: primary}
""",
    "testplans/affinity/run.sh": "#!/bin/sh\n",
    "testplans/health-check/plan.yaml": """\
name: health-check
summary: boots
script: run.sh
parser: health
checks_health: true
reference_setting: ""
scenarios: [{name: boot, summary: boots}]
hardware: {settings: [""], blocks: 1}
emulated: {settings: [""], blocks: 1}
metrics: []
""",
    "testplans/health-check/run.sh": "#!/bin/sh\n",
}


def write_data_folder(folder: Path) -> None:
    """Write the files of the data folder."""
    for name, content in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


INSTRUMENTED_TYPE = """\
name: counted
summary: an instrumented device
arch: x86_64
topology: {sockets: 1, l3_per_socket: 1, cores_per_l3: 2, threads_per_core: 1}
emulation: {memory_mib: 512, clock: instruction}
units: [{name: counted-1}]
"""


def add_instrumented(folder: Path) -> None:
    """Add an instrumented device type, and a window to the plan `locks`, so that sweeps are possible."""
    (folder / "device-types/counted.yaml").write_text(INSTRUMENTED_TYPE)
    (folder / "testplans/locks/run.sh").write_text("#!/bin/sh\nwindow begin\nwindow end\n")


MODELLED_TYPE = """\
name: model
summary: a modelled device
arch: x86_64
topology: {sockets: 1, l3_per_socket: 2, cores_per_l3: 2, threads_per_core: 1}
emulation: {memory_mib: 512, clock: model, profile: ryzen-3900x}
units: [{name: model-1}]
"""
COSTS = Path(__file__).parents[3] / "device-types/costs"


def add_modelled(folder: Path) -> None:
    """Add a modelled device type, with the costs of the repository."""
    (folder / "device-types/model.yaml").write_text(MODELLED_TYPE)
    if COSTS.exists():
        shutil.copytree(COSTS, folder / "device-types/costs")
    (folder / "testplans/locks/run.sh").write_text("#!/bin/sh\nwindow begin\nwindow end\n")
