"""JUnit XML of a report."""

from __future__ import annotations

import pytest
from all_examples import EXAMPLES
from failed_examples import FAILED
from report_examples import improvement, panic, study
from report_parts import XEON, XFS, samples, target, xeon
from report_support import hostile, junit

from wqlab_contracts.enums import PAIR, Arm, ErrorKind
from wqlab_contracts.messages import Failure


def test_junit_maps_verdicts():
    good = junit(improvement())
    assert [child.tag for child in good.case("locks_per_flush")] == ["system-out"]
    assert good.case("bandwidth").find("skipped").get("type") == "no_evidence"
    dead = junit(panic())
    assert dead.case("locks_per_flush").find("skipped").get("message") == "not measured: see kernels boot and survive"
    assert dead.case("survive").find("failure").get("type") == "kernel"
    assert junit(study()).case("cache_shard").find("skipped").get("type") == "lacking", "the cause"


def test_junit_regression_is_a_failure_and_infrastructure_an_error():
    worse = {
        ("fsync", "", "locks_per_flush", Arm.BASELINE): (33, 33),
        ("fsync", "", "locks_per_flush", Arm.CANDIDATE): (99, 99),
    }
    one = target(11, XFS, "xeon-2s", samples(XFS, "xeon-2s", worse), [""], list(PAIR), xeon(), XEON, (2, 2), {})
    found = junit(improvement().model_copy(update={"targets": [one]}))
    assert found.case("locks_per_flush").find("failure").get("type") == "regression"
    lost = Failure(kind=ErrorKind.INFRASTRUCTURE, summary="the device lost power")
    one = target(11, XFS, "xeon-2s", None, [""], list(PAIR), None, XEON, (0, 2), {}, failure=lost)
    found = junit(improvement().model_copy(update={"targets": [one]}))
    assert found.case("locks_per_flush").find("skipped").get("type") == "failed"
    assert found.case("survive").find("error").get("type") == "infrastructure"
    assert found.root.get("failures") == "0"


ATTRIBUTES = {
    "testsuites": {"name", "time", "tests", "failures", "disabled", "errors"},
    "testsuite": {"name", "tests", "failures", "errors", "time", "disabled", "skipped", "timestamp", "hostname", "id"},
    "testcase": {"name", "assertions", "time", "classname", "status"},
    "failure": {"message", "type"},
    "error": {"message", "type"},
    "skipped": {"message", "type"},
    "system-out": set(),
}
CHILDREN = {
    "testsuites": ["testsuite"],
    "testsuite": ["properties", "testcase", "system-out", "system-err"],
    "testcase": ["skipped", "error", "failure", "system-out", "system-err"],
}


@pytest.mark.parametrize("name", [*EXAMPLES, *FAILED, "hostile"])
def test_junit_conforms_to_the_schema(name):
    """Check element order and attributes against the junit.xsd that Jenkins and GitLab use."""
    root = junit(hostile() if name == "hostile" else (EXAMPLES | FAILED)[name]()).root
    for element in root.iter():
        assert set(element.attrib) <= ATTRIBUTES[element.tag]
        order = [CHILDREN[element.tag].index(child.tag) for child in element]
        assert order == sorted(order)
    for suite in root:
        assert int(suite.get("tests")) == len(suite.findall("testcase"))
        assert int(suite.get("skipped")) == len(suite.findall("testcase/skipped"))
