"""The allocator, checked against its rules and for every order of its inputs."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from wqlab_contracts.enums import DeviceHealth
from wqlab_server.estimates.queue_score import queue_score
from wqlab_server.lab.allocate import Assignment, HeldDevice, PoolDevice, WaitingRun, allocate

GOOD, SUSPECT, QUARANTINED = DeviceHealth.GOOD, DeviceHealth.SUSPECT, DeviceHealth.QUARANTINED


def pool_device(name: str, **more: object) -> PoolDevice:
    return PoolDevice(name, "tiny", str(more.pop("lab", "local")), GOOD, **more)  # type: ignore[arg-type]


XEON = [PoolDevice("xeon-1", "xeon", "local", GOOD), PoolDevice("xeon-2", "xeon", "local", GOOD)]


def wait(run_id: int, owner: str = "a", *, priority: int = 50, waited_s: float = 0, kind: str = "xeon") -> WaitingRun:
    return WaitingRun(run_id, owner, priority, waited_s, kind)


device_lists = st.lists(
    st.builds(
        PoolDevice,
        name=st.integers(0, 8).map(lambda n: f"u{n}"),
        device_type=st.sampled_from(["xeon", "ryzen"]),
        lab=st.sampled_from(["local", "far"]),
        health=st.sampled_from(list(DeviceHealth)),
        backend=st.sampled_from(["labgrid", "lava"]),
        unavailable=st.booleans(),
        backlog=st.sampled_from([0.0, 0.5, 3.0]),
    ),
    unique_by=lambda device: device.name,
)

waiting_lists = st.lists(
    st.builds(
        WaitingRun,
        run_id=st.integers(1, 30),
        owner=st.sampled_from("abc"),
        priority=st.integers(0, 100),
        waited_s=st.sampled_from([0.0, 30.0, 6000.0]),
        device_type=st.sampled_from(["xeon", "ryzen"]),
        backend=st.sampled_from([None, "labgrid", "lava"]),
        wanted_device=st.one_of(st.none(), st.integers(0, 8).map(lambda n: f"u{n}")),
        avoid=st.frozensets(st.integers(0, 8).map(lambda n: f"u{n}"), max_size=3),
    ),
    unique_by=lambda run: run.run_id,
)

capacities = st.dictionaries(st.sampled_from(["local", "far"]), st.integers(0, 4))


def simulate_queue(
    devices: list[PoolDevice], held: list[HeldDevice], waiting: list[WaitingRun], capacity: dict[str, int]
) -> list[Assignment]:
    """Assign one by one: each time the first run of the current order, and the best device that fits it."""
    lab = {device.name: device.lab for device in devices}
    free = {device for device in devices if device.health is not QUARANTINED and not device.unavailable} - {
        device for device in devices for lease in held if lease.device == device.name
    }
    busy = Counter(lab[lease.device] for lease in held)
    devices_held = Counter(lease.owner for lease in held)
    left, assignments = list(waiting), []
    while left:
        run = max(left, key=lambda run: (queue_score(run.priority, run.waited_s, devices_held[run.owner]), -run.run_id))
        left.remove(run)
        fitting = [
            device
            for device in free
            if busy[device.lab] < capacity.get(device.lab, 1000)
            and (
                device.name == run.wanted_device
                if run.wanted_device
                else (device.device_type, device.health) == (run.device_type, GOOD)
                and run.backend in (None, device.backend)
            )
        ]
        if fitting:
            device = min(fitting, key=lambda device: (device.name in run.avoid, device.backlog, device.name))
            free.remove(device)
            busy[device.lab] += 1
            devices_held[run.owner] += 1
            assignments.append(Assignment(run.run_id, device.name))
    return assignments


def test_device_with_the_shortest_backlog_gets_the_run() -> None:
    devices = [
        pool_device("a", lab="far", backend="lava", backlog=1.0),
        pool_device("b", lab="far", backend="lava"),
        pool_device("c"),
    ]
    run = WaitingRun(1, "ann", 50, 0, "tiny")
    assert allocate(devices, [], [run], {}) == [Assignment(1, "b")]
    assert allocate(devices[:1] + devices[2:], [], [run], {}) == [Assignment(1, "c")]
    assert allocate(devices[:1], [], [run], {}) == [Assignment(1, "a")], "a device with a backlog is better than none"


def test_run_with_a_backend_gets_no_other() -> None:
    lava, labgrid = pool_device("a", lab="far", backend="lava", backlog=9.0), pool_device("c")
    run = WaitingRun(1, "ann", 50, 0, "tiny", backend="lava")
    assert allocate([lava, labgrid], [], [run], {}) == [Assignment(1, "a")]
    assert allocate([labgrid], [], [run], {}) == []


def test_unavailable_device_is_not_assigned() -> None:
    unavailable = pool_device("a", lab="far", backend="lava", unavailable=True)
    check = WaitingRun(2, "lab", 100, 0, "tiny", wanted_device="a")
    assert allocate([unavailable], [], [WaitingRun(1, "ann", 50, 0, "tiny"), check], {}) == []


@settings(max_examples=200)
@given(device_lists, waiting_lists, capacities, st.data())
def test_assignments_are_valid_and_independent_of_input_order(
    devices: list[PoolDevice], waiting: list[WaitingRun], capacity: dict[str, int], data: st.DataObject
) -> None:
    held = [
        HeldDevice(device.name, "a")
        for device in data.draw(st.lists(st.sampled_from(devices), unique=True) if devices else st.just([]))
    ]
    assignments = allocate(devices, held, waiting, capacity)
    shuffled = [data.draw(st.permutations(items)) for items in (devices, held, waiting)]
    assert sorted(allocate(*shuffled, capacity), key=lambda a: a.run_id) == sorted(assignments, key=lambda a: a.run_id)

    used_devices = [assignment.device for assignment in assignments]
    assert len(set(used_devices)) == len(used_devices)
    assert not {lease.device for lease in held} & set(used_devices)
    assert len({assignment.run_id for assignment in assignments}) == len(assignments)
    by_name, by_id = {device.name: device for device in devices}, {run.run_id: run for run in waiting}
    for assignment in assignments:
        assigned, run = by_name[assignment.device], by_id[assignment.run_id]
        assert assigned.health is not QUARANTINED
        assert not assigned.unavailable
        if run.wanted_device is None:
            assert (assigned.device_type, assigned.health) == (run.device_type, GOOD)
            assert run.backend in (None, assigned.backend)
        else:
            assert assigned.name == run.wanted_device
    busy = Counter(by_name[lease.device].lab for lease in held)
    used = busy + Counter(by_name[name].lab for name in used_devices)
    assert all(used[lab] <= max(limit, busy[lab]) for lab, limit in capacity.items())


def test_wanted_device_must_be_good_unless_its_health_is_checked() -> None:
    device = PoolDevice("a", "tiny", "local", DeviceHealth.UNKNOWN)
    check = WaitingRun(1, "lab", 100, 0, "tiny", wanted_device="a")
    measuring = WaitingRun(2, "ada", 100, 0, "tiny", wanted_device="a", checks_health=False)
    assert allocate([device], [], [measuring], {}) == []
    assert allocate([device], [], [check], {}) == [Assignment(1, "a")]
    good = [PoolDevice(name, "tiny", "local", DeviceHealth.GOOD) for name in ("a", "b")]
    assert allocate(good, [HeldDevice("a", "bo")], [measuring], {}) == [], "it is waited for"
    assert allocate(good, [], [measuring], {}) == [Assignment(2, "a")]


@settings(max_examples=100)
@given(device_lists, waiting_lists)
def test_no_device_stays_free_while_a_fitting_run_waits(devices: list[PoolDevice], waiting: list[WaitingRun]) -> None:
    assignments = allocate(devices, [], waiting, {})
    served, used = {a.run_id for a in assignments}, {a.device for a in assignments}
    for run in waiting:
        if run.run_id not in served and run.wanted_device is None:
            assert not [
                u
                for u in devices
                if u.device_type == run.device_type
                and u.health is GOOD
                and not u.unavailable
                and run.backend in (None, u.backend)
                and u.name not in used
            ]


def test_runs_are_ordered_by_priority_then_age() -> None:
    queue = [wait(1, priority=10), wait(2, priority=90), wait(3, priority=50)]
    assert allocate(XEON[:1], [], queue, {}) == [Assignment(2, "xeon-1")]
    assert allocate(XEON[:1], [], [wait(5), wait(4), wait(6, waited_s=120)], {}) == [Assignment(6, "xeon-1")]


def test_submitter_with_devices_comes_after_others() -> None:
    queue = [wait(1, "busy", waited_s=300), wait(2, "new")]
    assert allocate(XEON, [HeldDevice("xeon-1", "busy")], queue, {}) == [Assignment(2, "xeon-2")]
    both = allocate(XEON, [], [wait(1, "a"), wait(2, "a"), wait(3, "b")], {})
    assert {assignment.run_id for assignment in both} == {1, 3}


def test_low_priority_run_is_served_within_two_hours() -> None:
    """A new run of the highest priority arrives every ten minutes, and the only device takes ten minutes for each."""
    minutes, served = 0, False
    while not served and minutes < 1000:
        queue = [wait(1, "patient", priority=0, waited_s=60 * minutes), wait(1000 + minutes, "urgent", priority=100)]
        served = allocate(XEON[:1], [], queue, {}) == [Assignment(1, "xeon-1")]
        minutes += 10
    assert served
    assert minutes <= 120


def test_avoided_device_is_used_only_as_the_last_choice() -> None:
    run = WaitingRun(1, "a", 50, 0, "xeon", avoid=frozenset({"xeon-1"}))
    assert allocate(XEON, [], [run], {}) == [Assignment(1, "xeon-2")]
    assert allocate(XEON[:1], [], [run], {}) == [Assignment(1, "xeon-1")]


def test_suspect_device_goes_to_a_check_but_not_to_a_run() -> None:
    suspect = [PoolDevice("xeon-1", "xeon", "local", SUSPECT)]
    check = WaitingRun(1, "lab", 100, 0, "xeon", wanted_device="xeon-1")
    assert allocate(suspect, [], [check, wait(2)], {}) == [Assignment(1, "xeon-1")]
    assert allocate(suspect, [], [wait(2)], {}) == []


def test_capacity_counts_devices_in_use() -> None:
    assert allocate(XEON, [HeldDevice("xeon-1", "a")], [wait(1)], {"local": 1}) == []
    assert len(allocate(XEON, [], [wait(1), wait(2)], {"local": 1})) == 1
    assert len(allocate(XEON, [], [wait(1), wait(2)], {"other": 1})) == 2


@settings(max_examples=300)
@given(device_lists, waiting_lists, capacities, st.data())
def test_result_equals_a_naive_queue_simulation(
    devices: list[PoolDevice], waiting: list[WaitingRun], capacity: dict[str, int], data: st.DataObject
) -> None:
    taken = data.draw(st.lists(st.sampled_from(devices), unique=True) if devices else st.just([]))
    held = [HeldDevice(device.name, data.draw(st.sampled_from("ab"))) for device in taken]
    assert allocate(devices, held, waiting, capacity) == simulate_queue(devices, held, waiting, capacity)


def test_runs_of_one_submission_get_devices_by_their_first_look_then_by_expected_decisions() -> None:
    looked = [
        WaitingRun(number, "ann", 50, 60, "tiny", decisions_per_s=rate)
        for number, rate in ((1, 0.001), (2, 0.02), (3, 0.0))
    ]
    fresh = WaitingRun(4, "ann", 50, 60, "tiny")
    order = []
    waiting = [*looked, fresh]
    while waiting:
        (given,) = allocate([pool_device("tiny-1")], [], waiting, {})
        order.append(given.run_id)
        waiting = [run for run in waiting if run.run_id != given.run_id]
    assert order == [4, 2, 1, 3]


def test_expected_decisions_do_not_outweigh_waiting_time() -> None:
    older = WaitingRun(1, "ann", 50, 120, "tiny", decisions_per_s=0.0)
    newer = WaitingRun(2, "ann", 50, 60, "tiny", decisions_per_s=1.0)
    assert allocate([pool_device("tiny-1")], [], [newer, older], {}) == [Assignment(1, "tiny-1")]
