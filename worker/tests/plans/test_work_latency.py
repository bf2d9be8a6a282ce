"""Plans work-latency and work-latency-scopes: their scenarios, and the functions of their script."""

from __future__ import annotations

from pathlib import Path

import pytest

from .scripts import call, plan

NAME = "work-latency"
KINDS = ["percpu", "highpri", "cpu_intensive", "bh", "unbound", "ordered", "delayed", "rescuer"]


def write(root: Path, files: dict[str, str]) -> str:
    """Write files below `root` and return its path, for the script's variable SYS."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{text}\n")
    return str(root)


def xeon(tmp_path: Path) -> str:
    """sysfs of two nodes; node 0 has two L3 domains of two cores, node 1 one; SMT siblings are numbered last."""
    l3 = {**dict.fromkeys((0, 4, 1, 5), "0-1,4-5"), **dict.fromkeys((2, 6), "2,6"), **dict.fromkeys((3, 7), "3,7")}
    files = {
        "devices/system/cpu/online": "0-7",
        "devices/system/node/node0/cpulist": "0-1,3,4-5,7",
        "devices/system/node/node1/cpulist": "2,6",
    }
    for cpu in range(8):
        folder = f"devices/system/cpu/cpu{cpu}"
        files[f"{folder}/topology/thread_siblings_list"] = f"{cpu % 4},{cpu % 4 + 4}"
        files[f"{folder}/cache/index3/shared_cpu_list"] = l3[cpu]
    return write(tmp_path / "sys", files)


def idle(tmp_path: Path, cpus: int = 2) -> str:
    """sysfs of CPUs with the idle states of a Xeon, C6 disabled by the device's conditions."""
    states = {"POLL": (0, 0), "C1": (2, 0), "C1E": (10, 0), "C6": (133, 1)}
    files = {}
    for cpu in range(cpus):
        for number, (name, (latency, disable)) in enumerate(states.items()):
            folder = f"devices/system/cpu/cpu{cpu}/cpuidle/state{number}"
            files |= {
                f"{folder}/name": name,
                f"{folder}/latency": str(latency),
                f"{folder}/disable": str(disable),
                f"{folder}/usage": str(100 * number),
            }
    return write(tmp_path / "sys", files)


def disabled(sys: str) -> list[list[str]]:
    root = Path(sys) / "devices/system/cpu"
    return [
        [(state / "disable").read_text().strip() for state in sorted((cpu / "cpuidle").iterdir())]
        for cpu in sorted(root.glob("cpu[0-9]*"))
    ]


def test_every_kind_has_a_scenario_and_all_but_the_rescuer_a_loaded_one() -> None:
    chosen = plan(NAME)
    found = {(str(s.parameters["kind"]), str(s.parameters["load"])) for s in chosen.scenarios}
    assert found == {(kind, load) for kind in KINDS for load in ("idle", "loaded")} - {("rescuer", "loaded")}
    targets = {scenario.parameters.get("target") for scenario in chosen.scenarios}
    assert targets == {None, "same_l3", "other_l3", "other_node"}


def test_every_scope_is_measured_on_hardware_strict_and_not() -> None:
    chosen = plan("work-latency-scopes")
    cells = {(knobs["scope"], knobs["strict"]) for knobs in map(chosen.knobs, chosen.hardware.settings[1:])}
    scopes = set(chosen.axes[0].values) - {"default"}
    assert cells == {(scope, strict) for scope in scopes for strict in ("0", "1")} - {("system", "1")}


@pytest.mark.parametrize(
    ("target", "place"),
    [
        ("local", "cpu=all"),
        ("same_core", "cpu=7 target=3"),
        ("other_l3", "cpu=7 target=0"),
        ("other_node", "cpu=7 target=2"),
    ],
)
def test_works_are_queued_to_a_cpu_at_the_requested_distance(tmp_path: Path, target: str, place: str) -> None:
    found = call(NAME, 'find_cpus && record fact place "$place"', tmp_path, SYS=xeon(tmp_path), TARGET=target)
    assert (found.facts["place"], found.unsupported) == (place, [])


def test_device_without_a_cpu_at_the_distance_is_unsupported(tmp_path: Path) -> None:
    found = call(NAME, "find_cpus || record fact left yes", tmp_path, SYS=xeon(tmp_path), TARGET="same_l3")
    reason = "target=same_l3: this device has no such CPU, seen from CPU 7, whose last-level cache is that of CPUs 3,7"
    assert found.unsupported == [("*", reason)]
    assert found.facts == {"left": "yes"}


@pytest.mark.parametrize(("target", "place"), [("same_l3", "cpu=7 target=2"), ("other_l3", "cpu=7 target=0")])
def test_device_without_l3_has_its_l2_as_last_level(tmp_path: Path, target: str, place: str) -> None:
    """As a big.LITTLE device, whose clusters share an L2 cache."""
    system = tmp_path / "sys"
    files = {"devices/system/cpu/online": "0-7"}
    files |= {
        f"devices/system/cpu/cpu{cpu}/cache/index2/shared_cpu_list": "0-1,4-5" if cpu % 4 < 2 else "2-3,6-7"
        for cpu in range(8)
    }
    write(system, files)
    found = call(NAME, 'find_cpus && record fact place "$place"', tmp_path, SYS=str(system), TARGET=target)
    assert (found.facts["place"], found.unsupported) == (place, [])


@pytest.mark.parametrize(
    ("kind", "load", "works"), [("percpu", "idle", "30"), ("bh", "loaded", "20"), ("rescuer", "idle", "10")]
)
def test_works_follow_kind_and_load(tmp_path: Path, kind: str, load: str, works: str) -> None:
    numbers = {"WORKS": "30", "LOADED_WORKS": "20", "RESCUER_WORKS": "10", "LONG_WORKS": "40"}
    assert call(NAME, "record fact works $(works)", tmp_path, KIND=kind, LOAD=load, **numbers).facts["works"] == works


@pytest.mark.parametrize(
    ("threshold", "scenario", "batch"),
    [
        ("10000", {"KIND": "percpu"}, ""),
        ("10000", {"KIND": "rescuer"}, " batch=24"),
        ("10000", {"KIND": "percpu", "LONG": "1"}, " batch=2 burn_us=40000"),
        ("25000", {"KIND": "percpu", "LONG": "1"}, " batch=2 burn_us=100000"),
        ("0", {"KIND": "percpu", "LONG": "1"}, " batch=2 burn_us=40000"),  # switched off
        (None, {"KIND": "percpu", "LONG": "1"}, " batch=2 burn_us=40000"),  # before Linux 6.5
    ],
)
def test_batches_follow_the_scenario_and_the_threshold(
    tmp_path: Path, threshold: str | None, scenario: dict[str, str], batch: str
) -> None:
    system = tmp_path / "sys"
    if threshold is not None:
        write(system, {"module/workqueue/parameters/cpu_intensive_thresh_us": threshold})
    numbers = {"RESCUER_BATCH": "24", "LONG_TIMES": "4", "SYS": str(system), **scenario}
    assert call(NAME, 'record fact batch "|$(batch)"', tmp_path, **numbers).facts["batch"] == f"|{batch}"


@pytest.mark.parametrize(
    ("cstate", "states"), [("poll", ["0", "1", "1", "1"]), ("shallow", ["0", "0", "1", "1"]), ("deep", ["0"] * 4)]
)
def test_idle_states_are_limited_read_back_and_restored(tmp_path: Path, cstate: str, states: list[str]) -> None:
    sys = idle(tmp_path)
    before = disabled(sys)
    copy = f"cp -r {sys} {tmp_path}/limited"
    command = f"limit_idle && idle_setting setting && {copy} && idle_setting setting_after && restore_idle"
    found = call(NAME, command, tmp_path, SYS=sys, SETTING_CSTATE=cstate)
    assert (found.settings, found.settings_after) == ({"cstate": cstate},) * 2
    assert disabled(str(tmp_path / "limited")) == [states] * 2
    assert disabled(sys) == before == [["0", "0", "0", "1"]] * 2


def test_idle_states_that_changed_meanwhile_are_reported(tmp_path: Path) -> None:
    sys = idle(tmp_path)
    state = f"{sys}/devices/system/cpu/cpu1/cpuidle/state3"
    command = f"limit_idle && echo 0 >{state}/disable && idle_setting setting_after"
    found = call(NAME, command, tmp_path, SYS=sys, SETTING_CSTATE="shallow")
    assert found.settings_after == {"cstate": f"changed: {state}"}


def test_default_idle_states_are_left_alone(tmp_path: Path) -> None:
    sys = idle(tmp_path)
    times = {file: file.stat().st_mtime_ns for file in Path(sys).rglob("disable")}
    command = "limit_idle && idle_setting setting && restore_idle && idle_setting setting_after"
    found = call(NAME, command, tmp_path, SYS=sys, SETTING_CSTATE="default")
    assert (found.settings, found.settings_after) == ({"cstate": "default"},) * 2
    assert {file: file.stat().st_mtime_ns for file in Path(sys).rglob("disable")} == times


def test_kernel_without_idle_states_is_unsupported(tmp_path: Path) -> None:
    found = call(NAME, "limit_idle || :", tmp_path, SYS=xeon(tmp_path), SETTING_CSTATE="deep")
    assert "has no idle states on this device (no cpuidle driver)" in dict(found.unsupported)["*"]


def test_entries_of_idle_states_are_summed_over_all_cpus(tmp_path: Path) -> None:
    found = call(NAME, "idle_entries | frame entries", tmp_path, SYS=idle(tmp_path, cpus=3))
    assert found.frame("entries") == ["POLL 0", "C1 300", "C1E 600", "C6 900"]


def test_kind_that_the_module_does_not_have_is_unsupported(tmp_path: Path) -> None:
    folder = tmp_path / "latency"
    folder.mkdir()
    (folder / "kinds").write_text("percpu\nunbound\n")
    found = call(NAME, "load_module() { :; }\nmeasure", tmp_path, LATENCY=str(folder), KIND="bh")
    assert "has no workqueue of kind bh: BH workqueues came with Linux 6.9" in dict(found.unsupported)["*"]


def test_kernel_without_scopes_measures_its_default_only(tmp_path: Path) -> None:
    folder = {"WORKQUEUE": str(tmp_path / "none")}
    default = {"SETTING_SCOPE": "default", "SETTING_STRICT": "default"}
    found = call(NAME, "affinity && affinity_after", tmp_path, **folder, **default)
    assert found.settings == found.settings_after == {"scope": "default", "strict": "default"}
    found = call(NAME, "affinity || :", tmp_path, **folder, SETTING_SCOPE="cache", SETTING_STRICT="1")
    assert "has no affinity scopes, which came with Linux 6.5" in dict(found.unsupported)["*"]
