"""Write a small valid data folder for tests."""

from pathlib import Path
from textwrap import dedent

import pytest

from wqlab_contracts.loading import DataError, load_data

FILES = {
    "device-types/common.yaml": """\
        boot:
          console_speed: 57600
          golden_timeout_s: 60
        """,
    "device-types/tiny.yaml": """\
        name: tiny
        summary: two CPUs
        arch: x86_64
        topology: {sockets: 1, l3_per_socket: 1, cores_per_l3: 2, threads_per_core: 1}
        boot:
          golden_timeout_s: 30
        emulation:
          memory_mib: 1024
        units:
          - name: tiny-1
          - name: tiny-2
        """,
    "kernels/trees.yaml": """\
        default: mine
        trees:
          - name: mine
            summary: a tree
            url: https://git.example.org/linux.git
        """,
    "kernels/recipes/measure.yaml": """\
        name: measure
        summary: a recipe
        fragments: [base]
        emulated_fragments: [emulated]
        """,
    "kernels/fragments/base.config": """\
        # prose
        CONFIG_SMP=y
        CONFIG_NR_CPUS=512
        # CONFIG_MODULES is not set
        """,
    "kernels/fragments/emulated.config": "CONFIG_PARAVIRT=y\n",
    "kernels/modules/load/Kbuild": "obj-m := load.o\n",
    "kernels/modules/load/load.c": "/* nothing */\n",
    "kernels/modules/common/words.h": "/* shared */\n",
    "testplans/common/lib.sh": "shared() { :; }\n",
    "testplans/health-check/plan.yaml": """\
        name: health-check
        summary: does it live
        script: check.sh
        parser: health
        checks_health: true
        scenarios: [{name: alive, summary: up}]
        axes: [{name: strict, values: ['0', '1']}]
        reference_setting: strict=0
        hardware: {settings: [strict=0]}
        emulated: {settings: [strict=0, strict=1]}
        metrics: []
        """,
    "testplans/health-check/check.sh": "echo fine\n",
}


def write(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text))


def problems(folder: Path) -> list[str]:
    with pytest.raises(DataError) as caught:
        load_data(folder)
    return str(caught.value).splitlines()
