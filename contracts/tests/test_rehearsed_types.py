"""Device types that were rehearsed, and rehearsal machines."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from wqlab_contracts.enums import Evidence
from wqlab_contracts.specs import DeviceType
from wqlab_contracts.specs.metrics import Metric

TYPE: dict[str, Any] = {
    "name": "board",
    "summary": "a board",
    "arch": "x86_64",
    "topology": {"sockets": 1, "l3_per_socket": 1, "cores_per_l3": 2, "threads_per_core": 1},
    "units": [{"name": "board-1"}],
}
REHEARSED = {"on": "2026-11-26", "not_covered": ["a real board's firmware"]}
BANDWIDTH = Metric.model_validate(
    {
        "name": "bandwidth",
        "summary": "Data written over the run time",
        "unit": "MiB/s",
        "scale": "ratio",
        "direction": "higher_is_better",
        "class": "performance",
        "taken_from": "untraced",
        "delta": 1,
    }
)


def test_a_rehearsal_says_when_and_what_was_not_covered() -> None:
    device_type = DeviceType.model_validate(TYPE | {"tested": "rehearsed", "rehearsed": REHEARSED})
    assert device_type.tested == "rehearsed"
    assert not device_type.emulated, "the type describes the real machine"


@pytest.mark.parametrize(
    "fields",
    [{"tested": "rehearsed"}, {"tested": False, "rehearsed": REHEARSED}, {"rehearsed": REHEARSED}],
)
def test_word_and_description_need_each_other(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="need each other"):
        DeviceType.model_validate(TYPE | fields)


def test_a_rehearsal_must_say_what_it_did_not_cover() -> None:
    with pytest.raises(ValidationError, match="not_covered"):
        DeviceType.model_validate(TYPE | {"tested": "rehearsed", "rehearsed": {"on": "2026-11-26", "not_covered": []}})


def test_the_speed_of_a_rehearsal_machine_is_no_evidence() -> None:
    device_type = DeviceType.model_validate(TYPE | {"rehearsal": True})
    assert BANDWIDTH.evidence(device_type.emulated) is Evidence.NONE
    assert BANDWIDTH.evidence(DeviceType.model_validate(TYPE).emulated) is Evidence.PERFORMANCE


def test_a_rehearsal_machine_boots_as_a_real_one() -> None:
    device_type = DeviceType.model_validate(TYPE | {"rehearsal": True})
    assert not device_type.on_bench
    assert device_type.kernel_arguments == DeviceType.model_validate(TYPE).kernel_arguments == ""


def test_the_bench_does_not_run_a_rehearsal_machine() -> None:
    with pytest.raises(ValidationError, match="a rehearsal machine has no `emulation`"):
        DeviceType.model_validate(TYPE | {"rehearsal": True, "emulation": {"memory_mib": 1024}})
