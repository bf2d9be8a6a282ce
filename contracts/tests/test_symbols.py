"""Symbols that a diff changes: those of the repository's series, and of hunks whose header misleads."""

from __future__ import annotations

import time
import timeit
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wqlab_contracts.diffstat import changed_files
from wqlab_contracts.mails.inspection import inspect
from wqlab_contracts.symbols import NAME_LIMIT, SYMBOLS_LIMIT, defined_symbol

ROOT = Path(__file__).parents[2]


def symbols_of(hunk: str, path: str = "kernel/workqueue.c", heading: str = "") -> list[str]:
    """Return the symbols that a hunk changes; its header announces as many lines as it has."""
    lines = hunk.splitlines()
    old = sum(line[:1] != "+" for line in lines)
    new = sum(line[:1] != "-" for line in lines)
    body = f"--- a/{path}\n+++ b/{path}\n@@ -1,{old} +1,{new} @@ {heading}\n" + "".join(f"{line}\n" for line in lines)
    (change,) = changed_files(body)
    return change.symbols


@pytest.mark.parametrize(
    ("series", "symbols"),
    [
        ("tests/series/contended-line.mbox", [["worker_pool", "flush_workqueue_prep_pwqs"]]),
        ("tests/series/default-scope-system.mbox", [["wq_affn_dfl"]]),
        ("tests/series/changes-a-comment.mbox", [[]]),
        ("tests/series/warns-at-boot.mbox", [["wq_test_warn"]]),
        ("tests/series/anywhere.mbox", [[]]),
        ("kernels/examples/dio-done-unbound.mbox", [["sb_init_dio_done_wq"]]),
        (
            "kernels/examples/flush-lock-runs.mbox",
            [["pwq_prep_flush", "flush_workqueue_prep_pwqs"], ["flush_workqueue_prep_pwqs"]],
        ),
    ],
)
def test_symbols_of_the_repositorys_series(series: str, symbols: list[list[str]]) -> None:
    patches = inspect((ROOT / series).read_text()).patches
    assert [[symbol for change in patch.files for symbol in change.symbols] for patch in patches] == symbols


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("static bool flush_workqueue_prep_pwqs(struct workqueue_struct *wq,", "flush_workqueue_prep_pwqs"),
        ("bool __queue_work(int cpu, struct workqueue_struct *wq)", "__queue_work"),
        ("__printf(1, 4) struct workqueue_struct *alloc_workqueue(const char *fmt,", "alloc_workqueue"),
        ("static enum wq_affn_scope wq_affn_dfl = WQ_AFFN_CACHE;", "wq_affn_dfl"),
        ("struct workqueue_struct *system_wq __ro_after_init;", "system_wq"),
        ("static const char *wq_affn_names[WQ_AFFN_NR_TYPES] = {", "wq_affn_names"),
        ("struct worker_pool {", "worker_pool"),
        ("enum wq_affn_scope {", "wq_affn_scope"),
        ("struct pool_workqueue;", "pool_workqueue"),
        ("static DEFINE_MUTEX(wq_pool_mutex);	/* protects pools, and the list */", "wq_pool_mutex"),
        ("static DEFINE_PER_CPU_SHARED_ALIGNED(struct worker_pool [NR_STD], cpu_worker_pools);", "cpu_worker_pools"),
        ("SYSCALL_DEFINE3(io_submit, aio_context_t, ctx_id, long, nr,", "io_submit"),
        ("core_initcall(wq_sysfs_init);", "wq_sysfs_init"),
        ("EXPORT_SYMBOL_GPL(queue_work_on);", "queue_work_on"),
        ("#define for_each_pwq(pwq, wq)						\\", "for_each_pwq"),
        ("# define WQ_X 1", "WQ_X"),
        ("static int nr_pwqs __guarded_by(&wq_pool_mutex) = 1;", "nr_pwqs"),
        ("struct worker *first_idle_worker(struct worker_pool *pool) __must_hold(&pool->lock);", "first_idle_worker"),
        ("static char buffer[8] __aligned(8);", "buffer"),
        ("__acquires(&pool->lock)", None),
        ("__cond_acquires(true, &pool->lock", None),
        ("retry:", None),
        ("\tif (flush_color >= 0)", None),
        ("#include <linux/cpu.h>", None),
        (" * queue_work_on() queues", None),
        ("static void", None),
        ("", None),
        ("((((", None),
        ("static struct {", None),
    ],
)
def test_defined_symbol(line: str, name: str | None) -> None:
    assert defined_symbol(line) == name


def test_header_names_the_function_only_until_another_begins() -> None:
    """A hunk's header names the function above the hunk; the change may be in the next one."""
    heading = "static void insert_wq_barrier(struct pool_workqueue *pwq,"
    assert symbols_of(" \tx = 1;\n-\ty = 1;\n }\n", heading=heading) == ["insert_wq_barrier"]
    later = " }\n \n+static int added(void)\n+{\n+\treturn 0;\n+}\n+\n static bool next(int x)\n {\n"
    assert symbols_of(later, heading=heading) == ["added"]
    removed = "-static int gone(void)\n-{\n-\treturn 0;\n-}\n-\n static bool next(int x)\n {\n"
    assert symbols_of(removed, heading=heading) == ["gone"]
    assert symbols_of("+#include <linux/cpu.h>\n #include <linux/slab.h>\n") == []


def test_comment_before_a_function_belongs_to_nothing() -> None:
    heading = "static void insert_wq_barrier(struct pool_workqueue *pwq,"
    assert symbols_of(" /**\n- * old words\n+ * new words\n  */\n", heading=heading) == []
    assert symbols_of(" \t/*\n-\t * old\n+\t * new\n \t */\n", heading=heading) == []


PROCESS_ONE_WORK = """\
 static void process_one_work(struct worker *worker, struct work_struct *work)
 __releases(&pool->lock)
{mark}__acquires(&pool->lock)
 {{
-\tpwq->stats[PWQ_STAT_COMPLETED]++;
"""


@pytest.mark.parametrize("mark", [" ", "+"])
def test_locking_annotations_below_the_head_of_a_function_define_nothing(mark: str) -> None:
    assert symbols_of(PROCESS_ONE_WORK.format(mark=mark)) == ["process_one_work"]
    added = "+static void f(void)\n+__must_hold(&a->lock)\n+__cond_acquires(true, &a->lock)\n+{\n+\tg();\n+}\n"
    assert symbols_of(added) == ["f"]


def test_annotation_in_the_header_is_no_symbol() -> None:
    """Git takes the last line in the first column; the name of the function is not in the diff."""
    hunk = " \tworker->current_func(work);\n-\tpwq->stats[PWQ_STAT_COMPLETED]++;\n"
    assert symbols_of(hunk, heading="__acquires(&pool->lock)") == []


def test_label_does_not_end_a_function() -> None:
    assert symbols_of(" static void f(void)\n {\n retry:\n+\tg();\n") == ["f"]
    assert symbols_of("+\tg();\n \th();\n", heading="retry:") == []


def test_variable_ends_with_its_line_and_an_initialiser_with_its_brace() -> None:
    assert symbols_of(" static bool wq_online;\n+\n+/* words */\n") == []
    assert symbols_of(' static const char *names[] = {\n+\t[A] = "a",\n };\n') == ["names"]


def test_macros() -> None:
    assert symbols_of(" #define for_each(x)\t\\\n+\tif (x)\t\\\n \t\tdo(x)\n") == ["for_each"]
    inside = " static void f(void)\n {\n+#define TWICE 2\n+\tg(TWICE);\n"
    assert symbols_of(inside) == ["TWICE", "f"]


def test_only_c_files_have_symbols() -> None:
    assert symbols_of("+int x(void)\n", path="include/linux/x.h") == ["x"]
    assert symbols_of("+int x(void)\n", path="Documentation/x.rst") == []


def test_number_and_length_of_symbols_are_limited() -> None:
    many = "".join(f"+int f{number}(void)\n" for number in range(SYMBOLS_LIMIT + 50))
    assert len(symbols_of(many)) == SYMBOLS_LIMIT
    (name,) = symbols_of(f"+int {'x' * 5000}(void)\n") or [""]
    assert len(name) <= NAME_LIMIT


@given(
    st.lists(st.tuples(st.sampled_from("+- "), st.text(alphabet=' \t{}();#\\/*=[],"_aZ9:', max_size=40)), max_size=30)
)
def test_any_hunk_is_read(lines: list[tuple[str, str]]) -> None:
    for name in symbols_of("".join(f"{mark}{text}\n" for mark, text in lines) or "+x\n"):
        assert 0 < len(name) <= NAME_LIMIT


@pytest.mark.parametrize("pump", ["_", "a ", "__printf(", "__attribute__((", "DEFINE_PER_CPU(", "struct x ", "a,", '"'])
def test_hostile_lines_take_about_the_time_of_ordinary_ones(pump: str) -> None:
    def seconds(line: str) -> float:
        return min(
            timeit.repeat(
                lambda: [defined_symbol(line) for _ in range(20)], number=1, repeat=3, timer=time.process_time
            )
        )

    ordinary = seconds("static bool flush_workqueue_prep_pwqs(struct workqueue_struct *wq,")
    assert seconds(f"static {pump * 200_000}") < 500 * ordinary
