"""Damaged and hostile output: each value is correct, or not measured with a reason."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wqlab_contracts.enums import ErrorKind, NotMeasuredCause
from wqlab_worker.measure.collect import VALUE_LIMIT, Measurement, collect, parser, read_records

from .test_recorded import RECORDED, RYZEN, XEON, plan

TRACED = (RECORDED / "dm-24cpu-cache.txt").read_text()
XFS = (RECORDED / "xfs-32cpu.txt").read_text()
GOOD = collect(TRACED, "dm_crypt_affinity", plan("dm-crypt-affinity"), RYZEN, True)


def dm(text: str, traced: bool = True, setting: str = "") -> Measurement:
    return collect(text, "dm_crypt_affinity", plan("dm-crypt-affinity"), RYZEN, traced, setting=setting)


def xfs(text: str) -> Measurement:
    return collect(text, "xfs_fsync", plan("xfs-fsync"), XEON, True)


def not_measured(found: Measurement, reason: str) -> None:
    assert found.values == {}
    assert found.failure is not None
    assert found.failure.kind is ErrorKind.INFRASTRUCTURE
    assert re.search(reason, found.failure.summary), found.failure.summary


def no_samples(found: Measurement, reason: str) -> None:
    """Check that exactly this repetition's metrics are unsupported."""
    assert found.values == {}
    assert found.failure is None
    assert found.empty
    assert found.empty == {metric for metric, _ in found.unsupported}
    assert {why.cause for _, why in found.unsupported} == {NotMeasuredCause.NO_SAMPLES}
    assert all(re.search(reason, why) for _, why in found.unsupported), found.unsupported


@pytest.mark.parametrize("text", ["", "\n\n", "command\tfio\n"])
def test_successful_script_without_values_is_not_measured(text: str) -> None:
    no_samples(dm(text), "no complete `fio` in the output")
    no_samples(xfs(text), "no complete `fio` in the output")


@pytest.mark.parametrize("text", ["\0\0", "Killed\n", "begin\tfio\n", "begin\tpairs\nbegin\tpairs\n", "command\tfio"])
def test_useless_output_is_not_measured(text: str) -> None:
    not_measured(dm(text), "not measured")
    not_measured(xfs(text), "not measured")


@settings(max_examples=60)
@given(st.integers(min_value=0, max_value=len(TRACED) - 1))
def test_output_cut_off_anywhere_never_gives_another_figure(end: int) -> None:
    found = dm(TRACED[:end])
    assert found.failure is None or found.values == {}
    assert found.failure is not None or found.values == GOOD.values or found.empty == set(GOOD.values)
    # Output that ends at a line boundary looks complete; only the exit status shows that it is not.
    assert not found.empty or TRACED[:end].endswith("\n") or not end


@settings(max_examples=60)
@given(st.integers(min_value=0, max_value=TRACED.count("\n")), st.text(max_size=200))
def test_garbage_line_between_records_changes_no_value(where: int, garbage: str) -> None:
    lines = TRACED.split("\n")
    lines.insert(where, garbage)
    found = dm("\n".join(lines))
    for name, value in found.values.items():
        if name.endswith("_share"):
            assert value == GOOD.values[name] or re.fullmatch(r"\s*[\d ]+\s*", garbage)


@settings(max_examples=60)
@given(st.text())
def test_reading_never_raises(text: str) -> None:
    read_records(text)
    read_records("\n".join(f"{kind}\t{text}" for kind in ("value", "failed", "overrun", "begin", "setting")))


@pytest.mark.parametrize(
    "broken", ["0 99 5 5", "0 1", "0 1 -5 1", "0 1 1e3 1", "0 1 nan", "x y z", "0 1 5 5 5", "9" * 30]
)
def test_malformed_pair_is_not_measured(broken: str) -> None:
    not_measured(dm(TRACED.replace("end\tpairs", f"{broken}\nend\tpairs")), "pairs: ")


def with_frame(name: str, body: str, text: str = TRACED) -> str:
    text, times = re.subn(
        f"begin\t{name}\n.*?end\t{name}\n", f"begin\t{name}\n{body}end\t{name}\n", text, flags=re.DOTALL
    )
    assert times == 1
    return text


def test_no_work_item_is_not_measured() -> None:
    empty = with_frame("pairs", "", with_frame("histogram queue_to_start_us", ""))
    empty = empty.replace("items\t1457", "items\t0")
    no_samples(dm(empty), "no work item")
    not_measured(dm(empty + "Killed\n"), "no work item")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (with_frame("pairs", "0 0 1 5\n"), "pairs has 1 works instead of 1457"),
        (with_frame("pairs", ""), "pairs has 0 works instead of 1457"),
        (with_frame("histogram queue_to_start_us", "7 1\n"), "queue_to_start_us has 1 counts instead of 1457"),
        (with_frame("histogram queue_to_start_us", ""), "queue_to_start_us has 0 counts instead of 1457"),
        (TRACED.replace("items\t1457", "items\t1458"), "has 1457 counts instead of 1458"),
    ],
)
def test_places_and_waits_are_those_of_all_works(text: str, reason: str) -> None:
    not_measured(dm(text), reason)


@pytest.mark.parametrize("value", ["nan", "inf", "1e400", "-1", "0x10", "1_0", "", "9" * 50])
def test_implausible_number_is_not_measured(value: str) -> None:
    text = (RECORDED / "dm-24cpu-untraced.txt").read_text()
    text = re.sub(r"value\tcpu_utilisation\t.*", f"value\tcpu_utilisation\t{value}", text)
    not_measured(dm(text, traced=False), "cpu_utilisation")


def test_lost_events_make_every_traced_metric_unsupported() -> None:
    found = dm("overrun\t12\n" + TRACED)
    assert found.values == {}
    assert found.failure is None
    assert {metric for metric, _ in found.unsupported} == set(GOOD.values)
    assert all("lost 12 events" in reason for _, reason in found.unsupported)
    assert {reason.cause for _, reason in found.unsupported} == {NotMeasuredCause.EVENTS_LOST}
    assert dm("overrun\tlots\n" + TRACED).values == {}


def test_setting_replaced_by_the_kernel_is_unsupported() -> None:
    script = "setting\tscope\tcache\nunsupported\t*\tkernel 6.12.117 silently uses affinity_scope cache\n"
    assert dm(script).unsupported == [(None, "kernel 6.12.117 silently uses affinity_scope cache")]
    assert dm(script).unsupported[0][1].cause is NotMeasuredCause.LACKING
    found = dm(TRACED, setting="scope=cache_shard,strict=0")
    assert found.values == {}
    assert found.unsupported == [(None, "scope=cache_shard was requested, the kernel used cache")]
    assert found.unsupported[0][1].cause is NotMeasuredCause.SETTING_NOT_USED
    changed = TRACED.replace("setting_after\tstrict\t0", "setting_after\tstrict\t1")
    assert dm(changed, setting="scope=cache,strict=0").unsupported[0][1].endswith("the kernel later used 1")


def fio_error(number: int) -> str:
    return re.sub(r'"error" : 0', f'"error" : {number}', TRACED)


def test_fio_error_decides_between_kernel_and_lab() -> None:
    wrong_data = dm(fio_error(84)).failure
    assert wrong_data is not None
    assert wrong_data.kind is ErrorKind.KERNEL
    no_space = dm(fio_error(28)).failure
    assert no_space is not None
    assert no_space.kind is ErrorKind.INFRASTRUCTURE
    said = dm("failed\tinfrastructure\tno device\n" + TRACED)
    assert said.failure is not None
    assert said.failure.summary == "no device"
    assert said.values == {}


def test_a_kernel_without_the_tracer_is_unsupported_not_zero() -> None:
    fio = XFS[XFS.index("begin\tfio") : XFS.index("end\tfio") + len("end\tfio\n")]
    found = xfs("unsupported\ttraced\tthis kernel has no traceable __flush_workqueue\n" + fio)
    assert found.failure is None
    assert ("locks_per_flush", "this kernel has no traceable __flush_workqueue") in found.unsupported


def histograms(waited: str, returned: str, whole: str) -> str:
    fio = XFS[XFS.index("begin\tfio") : XFS.index("end\tfio") + len("end\tfio\n")]
    named = {"locks_until_wait_waited": waited, "locks_until_wait_returned": returned, "locks_whole_flush": whole}
    return fio + "".join(f"begin\thistogram {n}\n{body}end\thistogram {n}\n" for n, body in named.items())


def test_larger_lock_count_of_the_two_kinds_counts() -> None:
    found = xfs(histograms("3 70\n", "34 30\n", "34 30\n37 70\n"))
    assert found.values["locks_per_flush"] == 34
    assert found.values["locks_per_flush_mean"] == pytest.approx(0.3 * 34 + 0.7 * 37)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (histograms("", "", ""), "only 0 flushes"),
        (histograms("", "0 500\n", "0 500\n"), "no lock that the tracer sees"),
        (histograms("3 30\n4 30\n5 30\n", "", "3 30\n4 30\n5 30\n"), "no lock count is shared by most"),
    ],
)
def test_missing_lock_count_is_unsupported(text: str, reason: str) -> None:
    found = xfs(text)
    assert "locks_per_flush" not in found.values
    why = dict(found.unsupported)["locks_per_flush"]
    assert reason in why
    assert why.cause is NotMeasuredCause.UNRELIABLE


def test_contradicting_histograms_are_not_measured() -> None:
    not_measured(xfs(histograms("34 10\n", "34 30\n", "34 30\n")), "are not the 30")


def test_metric_missing_from_the_parser_is_not_measured() -> None:
    chosen = plan("dm-crypt-affinity")
    extra = chosen.metrics[0].model_copy(update={"name": "forgotten"})
    found = collect(
        TRACED, "dm_crypt_affinity", chosen.model_copy(update={"metrics": [*chosen.metrics, extra]}), RYZEN, True
    )
    assert found.failure is None
    assert found.values == GOOD.values
    assert (found.unsupported, found.empty) == (
        [("forgotten", "no forgotten in the output")],
        {"forgotten"},
    )


def test_a_health_check_that_was_cut_off_has_not_passed() -> None:
    parse = parser("health_check")
    assert parse(read_records("fact\thealthy\tyes\n"), RYZEN, False) == Measurement(facts={"healthy": "yes"})
    not_measured(parse(read_records("fact\tcpus\t24\n"), RYZEN, False), "did not finish")


@pytest.mark.parametrize("name", ["fio", "nothing", "../collect", "", "collect"])
def test_unknown_parser_is_rejected(name: str) -> None:
    with pytest.raises(ValueError, match="no parser"):
        parser(name)


def test_interrupted_payloads_are_reported_as_damage() -> None:
    text = "".join(f"begin\tp{number}\n" for number in range(50_000))
    records = read_records(text)
    assert records.frames == {}
    assert "interrupted" in records.damage[0]
    records = read_records(text + "begin\tpairs\n1 2 3\nend\tpairs\n")
    assert records.frames == {"pairs": ["1 2 3"]}


def untraced(name: str, fio: str) -> Measurement:
    """Return output with the given fio result and every value that a script prints."""
    counted = "".join(f"value\t{each}\t1\n" for each in ("cpu_utilisation", "cpu_busy_seconds", "context_switches"))
    text = f"command\tfio\n{counted}begin\tfio\n{fio}\nend\tfio\n"
    return collect(text, name.replace("-", "_"), plan(name), XEON, False)


def fio_json(**changed: object) -> str:
    stream = {"total_ios": 1, "io_bytes": 1, "runtime": 1}
    latency = {"mean": 1.0, "percentile": {"50.000000": 1, "99.000000": 2, "99.900000": 3}}
    job: dict[str, object] = {
        "error": 0,
        "read": {**stream, "clat_ns": latency},
        "write": {**stream, "clat_ns": latency},
        "sync": {"total_ios": 1, "lat_ns": latency},
    }
    for place, value in changed.items():
        *path, last = place.split("__")
        part: object = job
        for name in path:
            part = part[name]  # type: ignore[index]
        part[last] = value  # type: ignore[index]
    return json.dumps({"fio version": "fio-3.33", "jobs": [job]})


WRONG_LATENCIES: list[dict[str, object]] = [
    {"mean": 10**400, "percentile": {"99.000000": 10**400}},
    {"mean": {}, "percentile": []},
]
BOTH = pytest.mark.parametrize("name", ["xfs-fsync", "dm-crypt-affinity"])


@BOTH
def test_fio_fixture_is_valid(name: str) -> None:
    assert untraced(name, fio_json()).failure is None


@BOTH
@pytest.mark.parametrize(
    "fio",
    [
        "{}",
        "{1}",
        '{"jobs": 3}',
        '{"jobs": [3]}',
        '{"jobs": ["error"]}',
        '{"jobs": [[]]}',
        "{" + '"a":{' * 5000,
        fio_json(write="x"),
        fio_json(write=[]),
        fio_json(sync=None),
        fio_json(error=float("inf")),
        fio_json(error=None),
        fio_json(write__total_ios=10**400),
        fio_json(write__runtime=-1),
        fio_json(read__clat_ns=1, write__clat_ns=1, sync__lat_ns=1),
        fio_json(read__clat_ns="mean", write__clat_ns="mean", sync__lat_ns="mean"),
        *(fio_json(read__clat_ns=wrong, write__clat_ns=wrong, sync__lat_ns=wrong) for wrong in WRONG_LATENCIES),
    ],
)
def test_a_broken_fio_result_is_not_measured(name: str, fio: str) -> None:
    not_measured(untraced(name, fio), "not measured: ")


@BOTH
@pytest.mark.parametrize("missing", ["50.000000", "99.000000", "99.900000"])
def test_a_fio_result_without_a_percentile_is_not_measured(name: str, missing: str) -> None:
    stream = "sync__lat_ns" if name == "xfs-fsync" else "write__clat_ns"
    percentile = {key: 1 for key in ("50.000000", "99.000000", "99.900000") if key != missing}
    found = untraced(name, fio_json(**{stream: {"mean": 1.0, "percentile": percentile}}))
    no_samples(found, "fio reports no (fsync|completion) latency: p")


def test_run_with_zero_write_time_is_not_measured() -> None:
    no_samples(untraced("xfs-fsync", fio_json(write__runtime=0)), "time of zero")


@BOTH
def test_run_without_data_is_not_measured(name: str) -> None:
    nothing = {"read__io_bytes": 0, "write__io_bytes": 0}
    no_samples(untraced(name, fio_json(**nothing)), "fio moved no data")
    failed = untraced(name, fio_json(**nothing, error=5)).failure
    assert failed and failed.summary == "fio failed with error 5"


def test_fio_version_is_made_printable() -> None:
    fio = fio_json().replace('"fio-3.33"', '"\\ud800\\u0000' + "x" * 1000 + '"')
    assert untraced("xfs-fsync", fio).facts["fio"] == "\ufffd\ufffd" + "x" * 98


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
PLACES = st.sampled_from(
    [f"{s}__{f}" for s in ("read", "write", "sync") for f in ("total_ios", "io_bytes", "runtime", "clat_ns", "lat_ns")]
    + [f"{s}__mean" for s in ("read__clat_ns", "write__clat_ns", "sync__lat_ns")]
    + ["error", "read", "write", "sync"]
)


@BOTH
@settings(max_examples=200)
@given(PLACES, JSON)
def test_arbitrary_fio_results_give_finite_values_or_none(name: str, place: str, value: object) -> None:
    found = untraced(name, fio_json(**{place: value}))
    assert found.failure is not None or found.values or found.empty
    assert all(0 <= figure <= VALUE_LIMIT for figure in found.values.values())
    assert not (found.failure and found.values)


ERRORS = [ZeroDivisionError, OverflowError, AttributeError, TypeError, ValueError, KeyError, IndexError, RecursionError]


@pytest.mark.parametrize("error", ERRORS)
def test_parser_exception_is_not_measured(monkeypatch: pytest.MonkeyPatch, error: type[Exception]) -> None:
    def choke(records: object, topology: object, traced: bool) -> Measurement:
        raise error("odd" * 1000)

    monkeypatch.setattr("wqlab_worker.measure.collect.parser", lambda name: choke)
    found = dm("command\tfio a\nfact\tdisk\tx\n")
    not_measured(found, f"^not measured: parser dm_crypt_affinity cannot read the output: {error.__name__}: ")
    assert found.failure is not None
    assert len(found.failure.summary) < 500
    assert (found.command, found.facts) == ("fio a", {"disk": "x"})
    said = dm("failed\tkernel\twrong data\n").failure
    assert said is not None
    assert (said.kind, said.summary) == (ErrorKind.KERNEL, "wrong data")
