"""Documents for KernelCI's results database."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from all_examples import EXAMPLES
from failed_examples import FAILED, does_not_compile, lab_failure
from hypothesis import given, settings
from hypothesis import strategies as st
from instrument_examples import instrumented
from kcidb_io.schema import V5_3
from report_examples import improvement, panic, study
from report_parts import NOW, NULL_POINTER, XEON, XFS, build, samples, target, xeon
from report_support import HOSTILE, hostile, with_bandwidth
from sweep_examples import swept
from walk_examples import walked

from wqlab_contracts.api.report import Report
from wqlab_contracts.api.runs import BootView, RunView
from wqlab_contracts.enums import PAIR, Arm, ArtifactKind, BootState, ErrorKind, JobState, Outcome, RunPurpose, Verdict
from wqlab_contracts.kcidb import parse_document
from wqlab_contracts.messages import Artifact, Failure
from wqlab_report.writers.kcidb import Sender, render_kcidb

REPORTS = {**EXAMPLES, **FAILED, "hostile": hostile}


def document(report: Report, *, public: bool = False) -> dict[str, Any]:
    """Return a document that KernelCI's own code finds valid."""
    text = render_kcidb(report, Sender("wqlab_test", public=public))
    parse_document(text.encode())
    return V5_3.validate(json.loads(text))


def statuses(found: dict[str, Any]) -> dict[str, str]:
    """Return the status of each boot by arm."""
    return {test["misc"]["arm"]: test["status"] for test in found["tests"] if test["path"] == "boot"}


def figures(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [test for test in found["tests"] if test["path"] != "boot"]


@pytest.mark.parametrize("public", [False, True])
@pytest.mark.parametrize("name", REPORTS)
def test_document_is_valid(name, public):
    found = document(REPORTS[name](), public=public)
    assert found["version"] == {"major": 5, "minor": 3}
    for each in [*found["checkouts"], *found["builds"], *found["tests"]]:
        assert each["origin"] == "wqlab_test"
        assert each["id"].startswith("wqlab_test:")
        assert not {" ", "/"} & set(each.get("path", ""))


def test_figure_is_a_number_of_the_candidate_with_its_verdict():
    found = document(improvement())
    (figure,) = [each for each in figures(found) if each["path"].endswith(".locks_per_flush")]
    assert figure["path"] == "wqlab.xfs-fsync.fsync.locks_per_flush"
    assert (figure["status"], figure["build_id"]) == ("DONE", "wqlab_test:7.candidate.build-2")
    assert figure["number"] == {"value": 3, "unit": "acquisitions", "prefix": "metric"}
    misc = figure["misc"]
    assert (misc["verdict"], misc["base_value"], misc["n"], misc["evidence"]) == ("improvement", 33, 3, "mechanism")
    assert misc["exact"] is True
    assert "interval_95" not in misc, "there is none between exact counts"
    assert figure["environment"]["misc"]["kind"] == "emulated"


def test_setting_is_a_level_of_the_path_and_its_kernel_is_the_build():
    found = document(study())
    (figure,) = [
        each
        for each in figures(found)
        if each["misc"]["setting"] == "scope=cache,strict=1" and ".HIGH." in each["path"]
    ]
    assert figure["path"] == "wqlab.dm-crypt-affinity.HIGH.scope-cache.strict-1.l3_share.vs_reference"
    assert figure["build_id"] == "wqlab_test:8.baseline.build-1"
    assert figure["number"] == {"value": 100, "unit": "%"}, "no prefix is put before %"
    assert figure["misc"]["interval_95"] == [75.06, 76.14]
    lacking = [each for each in figures(found) if "cache_shard" in each["path"]]
    assert {each["status"] for each in lacking} == {"SKIP"}
    assert [each for each in lacking if "number" in each] == []
    assert [each["id"] for each in found["checkouts"]] == ["wqlab_test:8.baseline"], "there is no series"


def test_regression_is_done_with_the_verdict_in_misc():
    worse = {
        ("fsync", "", "locks_per_flush", Arm.BASELINE): (33, 33),
        ("fsync", "", "locks_per_flush", Arm.CANDIDATE): (99, 99),
    }
    one = target(11, XFS, "xeon-2s", samples(XFS, "xeon-2s", worse), [""], list(PAIR), xeon(), XEON, (2, 2), {})
    (figure,) = figures(document(improvement().model_copy(update={"targets": [one]})))
    assert (figure["status"], figure["misc"]["verdict"]) == ("DONE", "regression")


def test_kernel_failure_is_fail_of_the_candidate_only():
    found = document(panic())
    assert statuses(found) == {"baseline": "PASS", "candidate": "FAIL"}
    assert figures(found) == [], "the boot says why there are no figures"
    (boot,) = [each for each in found["tests"] if each["status"] == "FAIL"]
    assert boot["build_id"] == "wqlab_test:9.candidate.build-3"
    assert boot["comment"].startswith("the candidate showed oops in 2 of 2 boots: BUG: kernel NULL pointer dereference")
    assert "NULL pointer" in boot["log_excerpt"]
    misc = boot["misc"]
    assert misc["error_kind"] == "kernel"
    assert (misc["blocks_completed"], misc["blocks_planned"], misc["blocks_discarded"]) == (0, 3, 2)
    oops = {"kind": "oops", "title": NULL_POINTER, "block": 1, "attempt": 1, "fatal": True}
    assert misc["findings"][0] == oops
    assert [(each["kind"], each["attempt"]) for each in misc["findings"]] == [
        ("oops", 1), ("panic", 1), ("oops", 2), ("panic", 2)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "comment", "excerpt"),
    [
        ("panics-at-boot", "the candidate showed panic in 2 of 2 boots", "panic at boot"),
        ("hangs-at-boot", "the candidate showed hang in 2 of 2 boots: the variant did not come up in 30 s", None),
    ],
)
def test_kernel_that_does_not_boot_is_fail(name, comment, excerpt):
    found = document(FAILED[name]())
    assert [each["status"] for each in found["builds"]] == ["PASS", "PASS"]
    assert statuses(found) == {"baseline": "PASS", "candidate": "FAIL"}
    candidate = found["tests"][1]
    assert candidate["comment"].startswith(comment)
    assert ("log_excerpt" in candidate) is (excerpt is not None), "a silent console has no excerpt"
    assert excerpt is None or excerpt in candidate["log_excerpt"]


def test_instrumented_figures_count_seeds():
    found = document(instrumented())
    assert [each["path"].rpartition(".")[2] for each in figures(found)] == [
        "kernel_instructions_per_op",
        "instructions_per_op",
        "transfers_across_l3_per_op",
        "transfers_within_l3_per_op",
    ]
    figure, *_, within = figures(found)
    assert figure["environment"]["misc"]["kind"] == "instrumented"
    assert "There are no times" in figure["environment"]["comment"]
    assert figure["number"]["unit"] == "instructions"
    assert figure["number"]["value"] == pytest.approx(242262.35, abs=0.01)
    misc = figure["misc"]
    assert (misc["verdict"], misc["evidence"]) == ("improvement", "instrumented")
    assert (misc["n"], misc["n_counts"]) == (6, "seeds")
    assert (misc["exact"], misc["p_adjusted"], misc["threshold"]) == (False, 0.03125, 0.2)
    assert misc["effect"] == pytest.approx(-0.74, abs=0.001)
    assert misc["interval_95"] == pytest.approx([-0.759, -0.727], abs=0.001)
    assert "verdict" not in within["misc"], "neither direction is better"


def test_each_topology_of_a_sweep_is_a_platform_of_its_own():
    found = document(swept())
    boots = [each for each in found["tests"] if each["path"] == "boot"]
    assert {each["status"] for each in boots} == {"PASS"}
    domains = [each["environment"]["misc"]["topology"]["last_level_domains"] for each in boots]
    assert domains == [1, 1, 2, 2, 4, 4, 8, 8]
    assert len({each["environment"]["misc"]["platform"] for each in boots}) == 4
    primary = [each["misc"] for each in figures(found) if each["misc"]["role"] == "primary"]
    assert [misc["verdict"] for misc in primary] == ["equivalent", "equivalent", "improvement", "improvement"]


def test_walked_series_is_reported_as_a_whole():
    found = document(walked())
    assert [each["id"] for each in found["builds"]] == [
        "wqlab_test:13.baseline.build-1", "wqlab_test:13.candidate.build-6"
    ]  # fmt: skip
    assert statuses(found) == {"baseline": "PASS", "candidate": "PASS"}
    assert [each["misc"]["verdict"] for each in figures(found)] == ["equivalent", "inconclusive"]


@pytest.mark.parametrize("blocks", [0, 1])
@pytest.mark.parametrize(
    ("kind", "status"), [(ErrorKind.INFRASTRUCTURE, "MISS"), (ErrorKind.CANCELED, "SKIP"), (ErrorKind.USER, "ERROR")]
)
def test_only_a_kernel_failure_is_fail(kind, status, blocks):
    failure = Failure(kind=kind, summary="it ended early")
    one = target(
        11, XFS, "xeon-2s", None, [""], list(PAIR), None, XEON, (blocks, 2), {}, failure=failure, outcome=Outcome.FAILED
    )
    found = document(improvement().model_copy(update={"targets": [one]}))
    assert statuses(found)["candidate"] == status
    assert statuses(found)["baseline"] == ("PASS" if blocks else "SKIP" if kind is ErrorKind.USER else status)
    assert "FAIL" not in json.dumps(found)


def test_lab_failure_is_a_miss_and_a_compile_error_fails_its_build():
    found = document(lab_failure())
    assert statuses(found) == {"baseline": "MISS", "candidate": "MISS"}
    found = document(does_not_compile())
    assert [each["status"] for each in found["builds"]] == ["PASS", "FAIL"]
    assert "'pwqs' undeclared" in found["builds"][1]["comment"]
    assert "pwqs->flush_color" in found["builds"][1]["log_excerpt"]
    assert found["builds"][1]["misc"]["error_kind"] == "user"
    assert statuses(found) == {"baseline": "SKIP"}, "a kernel that does not exist has no tests"
    lost = Failure(kind=ErrorKind.INFRASTRUCTURE, summary="the builder lost its disk")
    builds = [build(Arm.BASELINE, 1), build(Arm.CANDIDATE, 3, outcome=Outcome.FAILED, failure=lost)]
    report = does_not_compile()
    found = document(report.model_copy(update={"submission": report.submission.model_copy(update={"builds": builds})}))
    assert found["builds"][1]["status"] == "MISS"


def test_baseline_failure_does_not_blame_the_candidate():
    report = panic()
    (one,) = report.targets
    findings = [finding.model_copy(update={"arm": Arm.BASELINE}) for finding in one.findings]
    one = one.model_copy(update={"findings": findings})
    assert statuses(document(report.model_copy(update={"targets": [one]}))) == {"baseline": "FAIL", "candidate": "MISS"}


def test_series_that_does_not_apply_is_an_invalid_checkout():
    found = document(FAILED["does-not-apply"]())
    baseline, candidate = found["checkouts"]
    assert candidate["valid"] is False
    assert "patch failed" in candidate["log_excerpt"]
    assert "valid" not in baseline, "the base commit was not reported"
    assert (found["builds"], found["tests"]) == ([], [])


@settings(max_examples=20)
@given(st.lists(st.floats(1, 9000), min_size=1, max_size=5), st.lists(st.floats(1, 9000), min_size=1, max_size=5))
def test_emulated_throughput_is_left_out(baseline, candidate):
    size = min(len(baseline), len(candidate))
    one = render_kcidb(with_bandwidth(baseline[:size], candidate[:size]), Sender("wqlab_test"))
    other = render_kcidb(with_bandwidth([1.0] * size, [2.0] * size), Sender("wqlab_test"))
    assert one == other
    assert '"number"' not in one
    assert "Throughput and latency were left out" in one


def _with_files(report: Report, **more: Any) -> Report:
    """Return the report with an mbox, the artifacts of a build, and a boot of each arm."""
    kinds = (ArtifactKind.KERNEL, ArtifactKind.CONFIG, ArtifactKind.BUILD_LOG)
    artifacts = [Artifact(sha256=f"{n:064x}", size=1, kind=kind, name=str(kind)) for n, kind in enumerate(kinds)]
    boots = [
        BootView(
            id=number, run_id=11, block=0, position=0, arm=arm, attempt=0, device="xeon-2s-1", state=BootState.FINISHED,
            outcome=Outcome.PASSED, failure=None, valid=True, kernel_boot_id=None, token=None, build_id_gnu=None,
            release=None, cmdline=None, topology=None, environment={}, started_at=NOW, finished_at=NOW, golden_s=None,
            kexec_s=None, workload_s=None, overhead_s=None, console_bytes=9, console_truncated=False,
        )
        for number, arm in enumerate(Arm, start=21)
    ]  # fmt: skip
    run = RunView(
        id=11, submission_id=7, purpose=RunPurpose.MEASURE, plan="xfs-fsync", device_type="xeon-2s", device="xeon-2s-1",
        state=JobState.FINISHED, outcome=Outcome.PASSED, failure=None, attempt=1, blocks_planned=3, blocks_completed=3,
        progress="", queue_position=None, created_at=NOW, started_at=NOW, finished_at=NOW, boots=boots,
        consoles_deleted_at=more.get("deleted"),
    )  # fmt: skip
    submission = report.submission
    mbox = Artifact(sha256="ab" * 32, size=9, kind=ArtifactKind.SERIES, name="series.mbox")
    files = {"artifacts": artifacts, "files_deleted_at": more.get("deleted"), "origin": "https://git.example.org/l.git"}
    changes = {
        "apply": submission.apply.model_copy(update={"series_mbox": mbox, "files_deleted_at": more.get("deleted")}),
        "builds": [each.model_copy(update=files) for each in submission.builds],
        "runs": [run],
    }
    return report.model_copy(
        update={"submission": submission.model_copy(update=changes), "lab_url": more.get("lab_url", report.lab_url)}
    )


def test_public_lab_links_its_files():
    found = document(_with_files(improvement(), lab_url="https://lab.example.org/"), public=True)
    base = "https://lab.example.org/api/v1"
    candidate = found["checkouts"][1]
    assert candidate["patchset_files"] == [{"name": "series.mbox", "url": f"{base}/submissions/7/series"}]
    # As KCIDB has it: sha256sum *.patch | cut -c-64 | sha256sum | cut -c-64
    assert candidate["patchset_hash"] == "82a6564112bc37029d3b015453401525faa10b0729c2f72d3032a5f4c13bad51"
    assert candidate["git_repository_url"] == "https://git.example.org/l.git"
    kernel = found["builds"][1]
    assert kernel["output_files"] == [{"name": "kernel", "url": f"{base}/builds/2/artifacts/{0:064x}"}]
    assert (kernel["config_url"], kernel["log_url"]) == (f"{base}/builds/2/config", f"{base}/builds/2/log")
    assert [each.get("log_url") for each in found["tests"]][:2] == [
        f"{base}/runs/11/console?boot={n}" for n in (21, 22)
    ]


@pytest.mark.parametrize(
    ("public", "deleted", "lab_url"),
    [
        (False, None, "https://lab.example.org"),
        (True, NOW, "https://lab.example.org"),
        (True, None, "https://user:word@lab.example.org"),
    ],
)
def test_files_that_nobody_can_download_are_not_linked(public, deleted, lab_url):
    found = document(_with_files(improvement(), deleted=deleted, lab_url=lab_url), public=public)
    assert not re.search(r'"(log_url|config_url|output_files|patchset_files)"', json.dumps(found))
    assert found["checkouts"][1]["patchset_hash"], "the hash is known all the same"


def test_tests_are_of_the_kernel_that_was_booted():
    """Emulated and real devices of one submission boot different kernels of the same recipe."""
    report = improvement()
    other = [build(arm, number, build_id_gnu="cc" * 20) for arm, number in ((Arm.BASELINE, 5), (Arm.CANDIDATE, 6))]
    submission = report.submission.model_copy(update={"builds": [*other, *report.submission.builds]})
    found = document(report.model_copy(update={"submission": submission}))
    assert {test["build_id"] for test in found["tests"]} == {
        f"wqlab_test:7.{each}" for each in ("baseline.build-1", "candidate.build-2")
    }
    (one,) = report.targets
    unknown = one.model_copy(update={"environment": None})
    found = document(report.model_copy(update={"submission": submission, "targets": [unknown]}))
    assert found["tests"] == [], "no test is attributed to a kernel by guess"


def test_byte_identical_kernels_are_skipped():
    (one,) = improvement().targets
    skipped = one.model_copy(
        update={
            "byte_identical": True,
            "blocks_completed": 0,
            "comparisons": [],
            "verdict": Verdict.EQUIVALENT,
            "headline": "both kernels are byte-identical",
        }
    )
    found = document(improvement().model_copy(update={"targets": [skipped]}))
    assert statuses(found) == {"baseline": "SKIP", "candidate": "SKIP"}


def test_text_from_outside_has_no_control_characters():
    text = render_kcidb(hostile(), Sender("wqlab_test", public=True))
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    assert "\\u0000" not in text
    assert HOSTILE.partition("<img")[0] in text
