"""Build keys and defect keys."""

import pytest

from wqlab_contracts.enums import FindingKind
from wqlab_contracts.keys import build_key, defect_key, describe_defect, fragment_names, in_merge_order
from wqlab_contracts.messages import StackFrame
from wqlab_contracts.specs import KernelRecipe

RECIPE = KernelRecipe(
    name="measure",
    summary="x",
    fragments=["workloads", "base"],
    arch_fragments={"x86_64": ["x86_64"]},
    emulated_fragments=["emulated"],
)
FRAGMENTS = {"workloads": "A", "base": "B", "x86_64": "C", "emulated": "D"}
KEY = build_key("1" * 40, RECIPE, "x86_64", FRAGMENTS, "gcc 12")


def test_build_key_is_stable() -> None:
    """A changed key invalidates all cached kernels of all labs, so it must not change by accident."""
    assert KEY == "ed043f403c0b590141d3bd3cf56969509277322ea417575d3f02e17e993c84a1"


def test_build_key_does_not_depend_on_mapping_order() -> None:
    assert build_key("1" * 40, RECIPE, "x86_64", dict(sorted(FRAGMENTS.items())), "gcc 12") == KEY
    assert build_key("1" * 40, RECIPE, "x86_64", dict(reversed(FRAGMENTS.items())), "gcc 12") == KEY


def test_fragments_are_in_the_recipes_merge_order() -> None:
    names = [name for name, _ in in_merge_order(RECIPE, "x86_64", dict(sorted(FRAGMENTS.items())))]
    assert names == fragment_names(RECIPE, "x86_64", True) == ["workloads", "base", "x86_64", "emulated"]
    hardware = {name: text for name, text in FRAGMENTS.items() if name != "emulated"}
    assert [name for name, _ in in_merge_order(RECIPE, "x86_64", hardware)] == fragment_names(RECIPE, "x86_64", False)


def test_build_key_ignores_name_and_summary() -> None:
    renamed = RECIPE.model_copy(update={"name": "other", "summary": "y", "figures": False})
    assert build_key("1" * 40, renamed, "x86_64", FRAGMENTS, "gcc 12") == KEY


def test_build_key_depends_on_all_inputs() -> None:
    swapped = RECIPE.model_copy(update={"fragments": ["base", "workloads"]})
    allno = RECIPE.model_copy(update={"base_config": "allnoconfig"})
    without = {name: text for name, text in FRAGMENTS.items() if name != "emulated"}
    others = {
        build_key("2" * 40, RECIPE, "x86_64", FRAGMENTS, "gcc 12"),
        build_key("1" * 40, swapped, "x86_64", FRAGMENTS, "gcc 12"),
        build_key("1" * 40, allno, "x86_64", FRAGMENTS, "gcc 12"),
        build_key("1" * 40, RECIPE, "x86_64", without, "gcc 12"),
        build_key("1" * 40, RECIPE, "x86_64", FRAGMENTS | {"base": "B2"}, "gcc 12"),
        build_key("1" * 40, RECIPE, "x86_64", FRAGMENTS, "gcc 13"),
    }
    assert len(others | {KEY}) == 7


def test_build_key_depends_on_module_sources() -> None:
    recipe = RECIPE.model_copy(update={"modules": ["load", "probe"]})
    modules = {"load": {"Kbuild": "obj-m := load.o", "load.c": "1"}, "probe": {"Kbuild": "obj-m := probe.o"}}
    edited = modules | {"load": modules["load"] | {"load.c": "2"}}

    def key(modules: dict[str, dict[str, str]]) -> str:
        return build_key("1" * 40, recipe, "x86_64", FRAGMENTS, "gcc 12", modules)

    assert key(dict(reversed(modules.items()))) == key(modules) != key(edited) != KEY


def test_modules_missing_in_the_recipe_are_rejected() -> None:
    with pytest.raises(ValueError, match=r"recipe measure has modules \[\], not \['load'\]"):
        build_key("1" * 40, RECIPE, "x86_64", FRAGMENTS, "gcc 12", {"load": {}})


def test_defect_key_masks_what_varies_between_boots() -> None:
    first = defect_key("WARNING: CPU: 0 PID: 12 at kernel/a.c:10 a+0x1/0x20")
    assert first == defect_key("WARNING: CPU: 3 PID: 99 at kernel/a.c:12 a+0x4/0x24")
    assert first != defect_key("WARNING: CPU: 0 PID: 12 at kernel/a.c:10 b+0x1/0x20")


def frame(function: str, line: int, file: str = "kernel/workqueue.c", offset: int = 16) -> StackFrame:
    return StackFrame(function=function, offset=offset, file=file, line=line)


NULL = "BUG: kernel NULL pointer dereference, address: 0000000000000008"
STACK = [frame("list_add", 88, "include/linux/list.h").model_copy(update={"inlined": True}), frame("a", 10)]


def test_oopses_are_the_same_by_line_and_callers() -> None:
    first = describe_defect(FindingKind.OOPS, NULL, [*STACK, frame("b", 20)])
    other_offset = [*STACK[:1], frame("a", 10, offset=24), frame("b", 20)]
    assert first == describe_defect(FindingKind.OOPS, NULL.replace("0008", "0ff8"), other_offset)
    assert first == describe_defect(FindingKind.OOPS, NULL, [*STACK, frame("b", 25)]), "another line of the caller"
    others = ([*STACK, frame("c", 20)], [*STACK[:1], frame("a", 11), frame("b", 20)], [*STACK, frame("b", 20, "b.c")])
    for stack in (*others, STACK):
        assert first != describe_defect(FindingKind.OOPS, NULL, stack)


def test_panic_is_described_by_the_line_that_calls_it() -> None:
    printing = [frame(name, 9, "kernel/panic.c") for name in ("dump_stack_lvl", "dump_stack", "panic")]
    described = describe_defect(FindingKind.PANIC, "Kernel panic", [*printing, frame("a", 10), frame("b", 20)])
    assert described == "panic: Kernel panic in a@kernel/workqueue.c:10 < b@kernel/workqueue.c"
    assert describe_defect(FindingKind.PANIC, "Kernel panic", printing) == "panic: Kernel panic"


def described(kind: FindingKind, title: str, caller: str = "a", excerpt: str = "") -> str:
    return describe_defect(kind, title, [frame("refcount_warn_saturate", 5), frame(caller, 10)], excerpt)


SATURATED = "WARNING: CPU: 3 PID: 71 at lib/refcount.c:28 refcount_warn_saturate+0xbe/0x110"
NEWER = "WARNING: lib/refcount.c:28 at refcount_warn_saturate+0x3c4/0x4e0, CPU#3: kworker/3:1/71"
LOCKS = "fio/1 is trying to acquire lock:\nffff88810 (&{}){{+.+.}}-{{4:4}}, at: f+0x1/0x2\n"


def test_warning_of_a_checking_function_is_the_defect_of_its_caller() -> None:
    first = described(FindingKind.WARNING, SATURATED)
    assert first == described(FindingKind.WARNING, NEWER) == described(FindingKind.WARNING, NEWER.replace("#3", "#0"))
    assert first != described(FindingKind.WARNING, SATURATED, "b")
    assert first != described(FindingKind.WARNING, SATURATED.replace(":28", ":25"))


def test_what_handles_the_trap_is_no_caller() -> None:
    handling = [frame(name, 9) for name in ("panic", "__warn.cold", "some_handler", "refcount_warn_saturate")]
    of_both = [describe_defect(FindingKind.WARNING, SATURATED, [*handling, frame(name, 10)]) for name in ("a", "b")]
    assert [text.rpartition(" ")[2] for text in of_both] == ["a", "b"]


HELPERS = [
    (FindingKind.HUNG_TASK, "INFO: task a:1 blocked for more than 9 seconds.", "__schedule schedule __flush_work"),
    (FindingKind.HUNG_TASK, "INFO: task a:1 blocked for more than 9 seconds.", "__schedule io_schedule folio_wait_bit"),
    (
        FindingKind.HUNG_TASK,
        "INFO: task a:1 blocked for more than 9 seconds.",
        "schedule __rt_mutex_slowlock.constprop.0",
    ),
    (
        FindingKind.KASAN,
        "BUG: KASAN: slab-use-after-free in f+0x1/0x2",
        "print_address_description.constprop.0 kasan_report",
    ),
    (FindingKind.KASAN, "BUG: KASAN: slab-use-after-free in memcmp+0x1/0x2", "print_report kasan_report memcmp"),
    (
        FindingKind.LOCKDEP,
        "INFO: trying to register non-static key.",
        "register_lock_class __lock_acquire lock_acquire",
    ),
    (FindingKind.BUG, "BUG: KMSAN: uninit-value in memcpy+0x1/0x2", "__msan_memcpy"),
    (
        FindingKind.WARNING,
        "WARNING: mm/page_alloc.c:9 at __alloc_pages_noprof+0x1/0x2",
        "__alloc_pages_noprof __kmalloc_noprof",
    ),
]


@pytest.mark.parametrize(("kind", "title", "helpers"), HELPERS)
def test_first_function_beside_the_helpers_decides(kind: FindingKind, title: str, helpers: str) -> None:
    above = [frame(name, 9) for name in helpers.split()]
    first, other = (describe_defect(kind, title, [*above, frame(name, 10)]) for name in ("caller_a", "caller_b"))
    assert first != other and "caller_a" in first


def test_rcu_reports_of_a_checking_line_are_the_callers() -> None:
    title = "WARNING: suspicious RCU usage"
    excerpt = "-----\n./include/linux/rcupdate.h:409 Illegal context switch in RCU read-side critical section!\n"
    first, other = (
        describe_defect(FindingKind.LOCKDEP, title, [frame("__might_resched", 1), frame(name, 2)], excerpt)
        for name in ("caller_a", "caller_b")
    )
    assert first != other and "include/linux/rcupdate.h@409" in first


@pytest.mark.parametrize(
    ("kind", "first", "second", "same"),
    [
        (FindingKind.BUG, "BUG: scheduling while atomic: fio/4/0x2", "BUG: scheduling while atomic: dd/77/0x2", True),
        (
            FindingKind.BUG,
            "BUG: Bad page state in process fio  pfn:10",
            "BUG: Bad page state in process a  pfn:2f",
            True,
        ),
        (
            FindingKind.BUG,
            "BUG: Bad page state in process fio  pfn:10",
            "BUG: Bad page map in process fio  pte:1",
            False,
        ),
        (
            FindingKind.RCU_STALL,
            "INFO: rcu_preempt detected expedited stalls on CPUs/tasks: { 3-...D } 26 jiffies s: 589 root: 0x8/.",
            "INFO: rcu_preempt detected expedited stalls on CPUs/tasks: { 3-...D 5-.... P81 } 3 jiffies s: 1 root: 0/T",
            True,
        ),
        (
            FindingKind.WORKQUEUE_STALL,
            "BUG: workqueue lockup - pool cpus=0-3 node=0 flags=0x4 nice=0 stuck for 31s!",
            "BUG: workqueue lockup - pool cpus=0,2,4-5 node=0 flags=0x4 nice=0 stuck for 60s!",
            True,
        ),
        (
            FindingKind.WORKQUEUE_STALL,
            "BUG: workqueue lockup - pool cpus=0-3 node=0 flags=0x4 nice=0 stuck for 31s!",
            "BUG: workqueue lockup - pool cpus=3 node=0 flags=0x0 nice=0 stuck for 31s!",
            False,
        ),
        (FindingKind.BUG, "kernel BUG at mm/slub.c:10!", "kernel BUG at mm/slub.c:20!", False),
        (FindingKind.BUG, "UBSAN: shift-out-of-bounds in a/b.c:3:11", "UBSAN: shift-out-of-bounds in a/b.c:3:11", True),
        (
            FindingKind.HUNG_TASK,
            "INFO: task a:1 blocked for more than 9 seconds.",
            "INFO: task b:2 blocked for more",
            True,
        ),
        (FindingKind.WARNING, "WARNING: [a > 1] k/a.c:3 at f+0x1/0x2", "WARNING: [b > 1] k/a.c:3 at f+0x1/0x2", False),
    ],
)
def test_tasks_and_page_frames_are_no_part_of_a_defect(kind: FindingKind, first: str, second: str, same: bool) -> None:
    assert (described(kind, first) == described(kind, second)) is same


def test_deadlocks_are_the_same_by_their_lock_classes() -> None:
    title = "WARNING: possible circular locking dependency detected"
    first, other = (described(FindingKind.LOCKDEP, title, excerpt=LOCKS.format(name)) for name in ("wq->mutex", "q"))
    assert first != other
    assert first == described(FindingKind.LOCKDEP, title, "b", LOCKS.format("wq->mutex#2"))


def test_defect_key_compares_kernels_by_function() -> None:
    base = describe_defect(FindingKind.OOPS, NULL, [frame("a", 10), frame("b.isra.0", 20)])
    moved = describe_defect(FindingKind.OOPS, NULL, [frame("a", 13), frame("b", 23)])
    undecoded = describe_defect(FindingKind.OOPS, NULL, [StackFrame(function="a"), StackFrame(function="b")])
    other = describe_defect(FindingKind.OOPS, NULL, [frame("a", 10), frame("c", 20)])
    assert base != moved
    assert defect_key(base) == defect_key(moved) == defect_key(undecoded) != defect_key(other)
