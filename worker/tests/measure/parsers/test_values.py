"""Parser values, for plans without a parser of their own, and the runbook's plan that uses it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from wqlab_contracts.loading import load_data
from wqlab_contracts.specs import TestPlan
from wqlab_worker.measure.collect import Measurement, collect

from .test_recorded import XEON

REPOSITORY = Path(__file__).parents[4]
RUNBOOK = (REPOSITORY / "docs" / "runbook.md").read_text()


def metric(name: str, mode: str = "untraced") -> dict[str, str]:
    kind = {"scale": "ratio", "direction": "none", "class": "mechanism", "taken_from": mode}
    return {"name": name, "summary": name, "unit": "1", **kind}


def plan(*metrics: dict[str, str]) -> TestPlan:
    profile = {"settings": [""]}
    document: dict[str, Any] = {"name": "p", "summary": "p", "script": "p.sh", "parser": "values"}
    document |= {"scenarios": [{"name": "s", "summary": "s"}], "reference_setting": ""}
    return TestPlan.model_validate({**document, "hardware": profile, "emulated": profile, "metrics": list(metrics)})


def read(text: str, *metrics: dict[str, str], traced: bool = False) -> Measurement:
    return collect(text, "values", plan(*metrics), XEON, traced)


def fio(error: int = 0, read_ios: int = 0) -> str:
    """fio result of one second with 256 written blocks of 4 KiB and the given number of reads."""

    def stream(ios: int) -> dict[str, Any]:
        latency = {"mean": 2000.0, "percentile": {"50.000000": 1000, "99.000000": 9000, "99.900000": 9500}}
        return {"total_ios": ios, "io_bytes": ios * 4096, "runtime": 1000 if ios else 0, "clat_ns": latency}

    job = {"error": error, "read": stream(read_ios), "write": stream(256), "sync": {"total_ios": 0}}
    return f"begin\tfio\n{json.dumps({'fio version': 'fio-3.33', 'jobs': [job]})}\nend\tfio\n"


def test_value_records_are_the_metrics() -> None:
    found = read("command\tls\nfact\tdisk\tnull\nvalue\ta\t3\nvalue\tother\t9\nvalue\tb\t0\n", metric("a"), metric("b"))
    assert found.failure is None
    assert (found.values["a"], found.values["b"]) == (3.0, 0.0)
    assert (found.command, found.facts) == ("ls", {"disk": "null"})


def test_script_values_take_precedence_over_fio() -> None:
    found = read(fio() + "value\tiops\t7\n", metric("bandwidth"), metric("iops"), metric("write_p99"))
    assert found.failure is None
    assert found.values == {"bandwidth": 1.0, "iops": 7.0, "write_p50": 1.0, "write_p99": 9.0, "write_p999": 9.5}
    assert found.facts["fio"] == "fio-3.33"
    assert read(fio(read_ios=256), metric("iops")).values["iops"] == 512


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("value\ta\tnan\n", "not measured: a"),
        ("value\ta\t-1\n", "a would be -1"),
        ("value\ta\t1\nvalue\tcpu_utilisation\t5324\n", "cpu_utilisation would be 5324 %"),
        ("value\ta\t1\nbegin\tfio\n{}\nend\tfio\n", "fio's result is not readable"),
        ("value\ta\t1\nfailed\tinfrastructure\tno disk\n", "no disk"),
        ("value\ta\t1\n" + fio(error=5), "fio failed with error 5"),
    ],
)
def test_unreadable_value_is_a_failure(text: str, reason: str) -> None:
    found = read(text, metric("a"))
    assert found.failure is not None
    assert re.search(reason, found.failure.summary)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no a in the output"),
        ("value\tb\t1\n", "no a in the output"),
        (fio().replace('"runtime": 1000', '"runtime": 0'), "fio moved no data"),
    ],
)
def test_missing_value_is_not_measured(text: str, reason: str) -> None:
    """Check that exactly the plan's metrics of this kind of repetition are unsupported."""
    found = read(text, metric("a"), metric("iops", "traced"))
    assert found.failure is None
    assert (found.unsupported, found.empty) == ([("a", reason)], {"a"})


def test_wrong_result_is_a_kernel_failure() -> None:
    failure = read("value\ta\t1\n" + fio(error=84), metric("a")).failure
    assert failure is not None
    assert failure.kind == "kernel"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("unsupported\ta\tno such file\nvalue\tb\t1\n", "no such file"),
        ("unsupported\ttraced\tno tracer\nvalue\tb\t1\n", "no tracer"),
        ("overrun\t12\nvalue\ta\t3\nvalue\tb\t1\n", "the trace buffer lost 12 events"),
    ],
)
def test_unsupported_records_and_lost_events_make_metrics_unsupported(text: str, reason: str) -> None:
    found = read(text, metric("a", "traced"), metric("b", "traced"), traced=True)
    assert found.failure is None
    assert "a" not in found.values
    assert any(name == "a" and reason in why for name, why in found.unsupported)
    assert {name for name, _ in found.unsupported} | found.values.keys() == {"a", "b"}


def test_a_whole_setting_can_be_unsupported() -> None:
    assert read("unsupported\t*\tno knob\nvalue\ta\t1\n", metric("a")).unsupported == [(None, "no knob")]


def example(language: str, first: str) -> str:
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", RUNBOOK, re.MULTILINE | re.DOTALL)
    return next(block for block in blocks if block.startswith(first))


def test_plan_of_the_runbook_loads_and_measures(tmp_path: Path) -> None:
    for name in ("device-types", "kernels", "testplans"):
        shutil.copytree(REPOSITORY / name, tmp_path / name)
    folder = tmp_path / "testplans" / "forks"
    folder.mkdir()
    (folder / "plan.yaml").write_text(example("yaml", "name: forks"))
    (folder / "forks.sh").write_text(example("sh", "#!/bin/sh"))
    loaded = load_data(tmp_path)
    device = tmp_path / "device"
    device.mkdir()
    for name, text in loaded.plan_files("forks").items():
        (device / name).write_text(text)
    done = subprocess.run(
        ["sh", device / "forks.sh", "measure"], env={"PATH": "/usr/bin:/bin", "FORKS": "40"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = collect(done.stdout, "values", loaded.plans["forks"], XEON, False)
    assert found.failure is None, done.stderr
    assert found.values["switches_per_fork"] > 0
    assert found.command == "40 times /bin/true"
