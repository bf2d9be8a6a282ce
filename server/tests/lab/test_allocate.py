"""The allocator, for every order of its inputs."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from wqlab_contracts.enums import DeviceHealth
from wqlab_server.jobs.state import queue_score
from wqlab_server.lab.allocate import Assignment, Held, Unit, Waiting, allocate

GOOD, SUSPECT, QUARANTINED = DeviceHealth.GOOD, DeviceHealth.SUSPECT, DeviceHealth.QUARANTINED
XEON = [Unit("xeon-1", "xeon", "local", GOOD), Unit("xeon-2", "xeon", "local", GOOD)]


def wait(run_id: int, owner: str = "a", *, priority: int = 50, waited_s: float = 0, kind: str = "xeon") -> Waiting:
    return Waiting(run_id, owner, priority, waited_s, kind)


units_of = st.lists(
    st.builds(
        Unit,
        name=st.integers(0, 8).map(lambda n: f"u{n}"),
        device_type=st.sampled_from(["xeon", "ryzen"]),
        lab=st.sampled_from(["local", "far"]),
        health=st.sampled_from(list(DeviceHealth)),
        backend=st.sampled_from(["labgrid", "lava"]),
        away=st.booleans(),
        backlog=st.sampled_from([0.0, 0.5, 3.0]),
    ),
    unique_by=lambda unit: unit.name,
)
waiting_of = st.lists(
    st.builds(
        Waiting,
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
capacity_of = st.dictionaries(st.sampled_from(["local", "far"]), st.integers(0, 4))


@settings(max_examples=200, deadline=None)
@given(units_of, waiting_of, capacity_of, st.data())
def test_any_order_of_the_inputs_gives_the_same_answer_and_no_device_two_runs(
    units: list[Unit], waiting: list[Waiting], capacity: dict[str, int], data: st.DataObject
) -> None:
    held = [
        Held(unit.name, "a")
        for unit in data.draw(st.lists(st.sampled_from(units), unique=True) if units else st.just([]))
    ]
    made = allocate(units, held, waiting, capacity)
    shuffled = [data.draw(st.permutations(items)) for items in (units, held, waiting)]
    assert sorted(allocate(*shuffled, capacity), key=lambda a: a.run_id) == sorted(made, key=lambda a: a.run_id)

    devices = [assignment.device for assignment in made]
    assert len(set(devices)) == len(devices)
    assert not {lease.device for lease in held} & set(devices)
    assert len({assignment.run_id for assignment in made}) == len(made)
    unit, run = {u.name: u for u in units}, {w.run_id: w for w in waiting}
    for assignment in made:
        given_unit, to = unit[assignment.device], run[assignment.run_id]
        assert given_unit.health is not QUARANTINED
        assert not given_unit.away
        if to.wanted_device is None:
            assert (given_unit.device_type, given_unit.health) == (to.device_type, GOOD)
            assert to.backend in (None, given_unit.backend)
        else:
            assert given_unit.name == to.wanted_device
    busy = Counter(unit[lease.device].lab for lease in held)
    used = busy + Counter(unit[device].lab for device in devices)
    assert all(used[lab] <= max(bound, busy[lab]) for lab, bound in capacity.items())


@settings(max_examples=100, deadline=None)
@given(units_of, waiting_of)
def test_no_device_stays_free_while_a_run_that_fits_it_waits(units: list[Unit], waiting: list[Waiting]) -> None:
    made = allocate(units, [], waiting, {})
    served, used = {a.run_id for a in made}, {a.device for a in made}
    for run in waiting:
        if run.run_id not in served and run.wanted_device is None:
            assert not [
                u
                for u in units
                if u.device_type == run.device_type
                and u.health is GOOD
                and not u.away
                and run.backend in (None, u.backend)
                and u.name not in used
            ]


def test_priority_then_age() -> None:
    queue = [wait(1, priority=10), wait(2, priority=90), wait(3, priority=50)]
    assert allocate(XEON[:1], [], queue, {}) == [Assignment(2, "xeon-1")]
    assert allocate(XEON[:1], [], [wait(5), wait(4), wait(6, waited_s=120)], {}) == [Assignment(6, "xeon-1")]


def test_a_submitter_with_devices_lets_others_first() -> None:
    queue = [wait(1, "busy", waited_s=300), wait(2, "new")]
    assert allocate(XEON, [Held("xeon-1", "busy")], queue, {}) == [Assignment(2, "xeon-2")]
    both = allocate(XEON, [], [wait(1, "a"), wait(2, "a"), wait(3, "b")], {})
    assert {assignment.run_id for assignment in both} == {1, 3}


def test_nobody_starves_behind_a_stream_of_urgent_runs() -> None:
    """A new run of the highest priority comes every ten minutes, forever; the device takes ten minutes for each."""
    minutes, served = 0, False
    while not served and minutes < 1000:
        queue = [wait(1, "patient", priority=0, waited_s=60 * minutes), wait(1000 + minutes, "urgent", priority=100)]
        served = allocate(XEON[:1], [], queue, {}) == [Assignment(1, "xeon-1")]
        minutes += 10
    assert served
    assert minutes <= 120


def test_a_unit_that_failed_before_is_the_last_choice_but_a_choice() -> None:
    run = Waiting(1, "a", 50, 0, "xeon", avoid=frozenset({"xeon-1"}))
    assert allocate(XEON, [], [run], {}) == [Assignment(1, "xeon-2")]
    assert allocate(XEON[:1], [], [run], {}) == [Assignment(1, "xeon-1")]


def test_a_check_gets_its_suspect_unit_and_a_run_does_not() -> None:
    suspect = [Unit("xeon-1", "xeon", "local", SUSPECT)]
    check = Waiting(1, "lab", 100, 0, "xeon", wanted_device="xeon-1")
    assert allocate(suspect, [], [check, wait(2)], {}) == [Assignment(1, "xeon-1")]
    assert allocate(suspect, [], [wait(2)], {}) == []


def test_capacity_counts_devices_in_use() -> None:
    assert allocate(XEON, [Held("xeon-1", "a")], [wait(1)], {"local": 1}) == []
    assert len(allocate(XEON, [], [wait(1), wait(2)], {"local": 1})) == 1
    assert len(allocate(XEON, [], [wait(1), wait(2)], {"elsewhere": 1})) == 2


def one_by_one(
    units: list[Unit], held: list[Held], waiting: list[Waiting], capacity: dict[str, int]
) -> list[Assignment]:
    """The rule as it is said: again and again the run that comes first now, and the best unit that fits it."""
    lab = {unit.name: unit.lab for unit in units}
    free = {unit for unit in units if unit.health is not QUARANTINED and not unit.away} - {
        unit for unit in units for lease in held if lease.device == unit.name
    }
    busy, devices = Counter(lab[lease.device] for lease in held), Counter(lease.owner for lease in held)
    left, made = list(waiting), []
    while left:
        run = max(left, key=lambda run: (queue_score(run.priority, run.waited_s, devices[run.owner]), -run.run_id))
        left.remove(run)
        fitting = [
            unit
            for unit in free
            if busy[unit.lab] < capacity.get(unit.lab, 1000)
            and (
                unit.name == run.wanted_device
                if run.wanted_device
                else (unit.device_type, unit.health) == (run.device_type, GOOD) and run.backend in (None, unit.backend)
            )
        ]
        if fitting:
            unit = min(fitting, key=lambda unit: (unit.name in run.avoid, unit.backlog, unit.name))
            free.remove(unit)
            busy[unit.lab] += 1
            devices[run.owner] += 1
            made.append(Assignment(run.run_id, unit.name))
    return made


@settings(max_examples=300, deadline=None)
@given(units_of, waiting_of, capacity_of, st.data())
def test_it_answers_as_going_through_the_queue_one_by_one_does(
    units: list[Unit], waiting: list[Waiting], capacity: dict[str, int], data: st.DataObject
) -> None:
    taken = data.draw(st.lists(st.sampled_from(units), unique=True) if units else st.just([]))
    held = [Held(unit.name, data.draw(st.sampled_from("ab"))) for unit in taken]
    assert allocate(units, held, waiting, capacity) == one_by_one(units, held, waiting, capacity)
