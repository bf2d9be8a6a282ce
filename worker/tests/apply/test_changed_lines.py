"""Lines and functions that a series changes."""

from __future__ import annotations

import pytest

from wqlab_contracts.enums import Arm
from wqlab_worker.apply.changed_lines import UNREADABLE, changed_lines, touched_functions

HEAD = "diff --git a/kernel/workqueue.c b/kernel/workqueue.c\n--- a/kernel/workqueue.c\n+++ b/kernel/workqueue.c\n"
PREP = """\
@@ -3850,6 +3850,9 @@ static bool flush_workqueue_prep_pwqs(struct workqueue_struct *wq,
 \t\tstruct worker_pool *pool = pwq->pool;

+\t\tif (pool != current_pool)
+\t\t\traw_spin_lock_irq(&pool->lock);
 \t\tif (flush_color >= 0) {
"""
ADDED = """\
@@ -100,2 +100,12 @@ static void last_one(void)
 }

+/* Take the lock (once) per pool. */
+static inline bool
+take_once(struct worker_pool *pool)
+{
+\tif (likely(pool->cpu == 1))
+\t\treturn true;
+}
+
 static int process_one_work(struct worker *worker)
 {
"""
STRUCT = """\
@@ -180,6 +180,7 @@ struct worker_pool {
 \tint\t\t\tcpu;
+\tint\t\t\twaiters;
 \tint\t\t\tnode;
"""


def test_hunk_names_the_function_that_it_begins_in() -> None:
    assert touched_functions([HEAD + PREP]) == ["flush_workqueue_prep_pwqs"]


def test_function_that_a_hunk_adds_is_touched_and_its_neighbours_are_not() -> None:
    assert touched_functions([HEAD + ADDED]) == ["take_once"]


def test_locking_annotations_below_the_head_are_no_functions() -> None:
    changed = "-\tpwq->stats[PWQ_STAT_COMPLETED]++;\n"
    head = " static void process_one_work(struct worker *worker, struct work_struct *work)\n"
    annotated = f"{head} __releases(&pool->lock)\n __acquires(&pool->lock)\n {{\n{changed}"
    assert touched_functions([f"{HEAD}@@ -3164,5 +3164,4 @@\n{annotated}"]) == ["process_one_work"]
    assert touched_functions([f"{HEAD}@@ -3241,1 +3241,0 @@ __acquires(&pool->lock)\n{changed}"]) == []


def test_changed_member_of_a_struct_is_no_function() -> None:
    assert touched_functions([HEAD + STRUCT]) == []


def test_functions_of_all_patches_are_listed_once() -> None:
    assert touched_functions([HEAD + PREP + ADDED, HEAD + PREP]) == ["flush_workqueue_prep_pwqs", "take_once"]


@pytest.mark.parametrize(
    "patch",
    [
        PREP,  # no file
        HEAD.replace("workqueue.c", "workqueue.rst") + PREP,
        HEAD + "@@ -1 +1 @@\n-EXPORT_SYMBOL_GPL(flush_work);\n+EXPORT_SYMBOL_GPL(flush_work_on);\n",
        HEAD + "@@ -1 +1 @@\n-#define F(x) (x)\n+#define F(x) (x + 1)\n",
        HEAD + "@@ -1 +1 @@ out:\n-\tint a;\n+\tint b;\n",
    ],
)
def test_other_changes_touch_no_function(patch: str) -> None:
    assert touched_functions([patch]) == []


def test_number_and_length_of_names_are_limited() -> None:
    many = "".join(f"+void f{number}(void)\n+{{\n+}}\n" for number in range(1500))
    assert len(touched_functions([HEAD + "@@ -1 +1 @@\n" + many])) == 1000
    assert touched_functions([f"{HEAD}@@ -1 +1 @@ void {'f' * 500}(void)\n+\tx();\n"]) == []


def ranges(patch: str) -> list[tuple[str, str, str, int, int]]:
    """Return (side, file, function, first, last) of the changed lines."""
    return [(each.arm.name[0], each.file, each.function, each.first, each.last) for each in changed_lines(patch)]


def test_lines_have_the_numbers_of_their_own_source() -> None:
    patch = f"""{HEAD}@@ -10,6 +10,7 @@ static void first(void)
 \tint a;
-\tint b;
-\tint c;
+\tint d;
\x20
+\ta = 1;
+\td = 2;
+
 \treturn;
@@ -100,3 +101,2 @@ static void second(void)
 \tx();
-\ty();
 \tz();
"""
    assert ranges(patch) == [
        ("B", "kernel/workqueue.c", "first", 11, 12),
        ("C", "kernel/workqueue.c", "first", 11, 11),
        ("C", "kernel/workqueue.c", "first", 13, 14),
        ("B", "kernel/workqueue.c", "second", 101, 101),
    ]


def test_lines_that_cannot_change_a_kernel_are_skipped() -> None:
    added = ADDED.replace("@@ -100,2 +100,12", "@@ -100,2 +100,13").replace(
        "\t\treturn true;\n", "\t\treturn true; /* yes */\n+\t/*\n+\t * A comment.\n+\t */\n+\t*last = 1;\n"
    )
    assert ranges(HEAD + added) == [
        ("C", "kernel/workqueue.c", "", 103, 103),  # the type of a function before its name
        ("C", "kernel/workqueue.c", "take_once", 104, 104),
        ("C", "kernel/workqueue.c", "take_once", 106, 107),
        ("C", "kernel/workqueue.c", "take_once", 111, 111),
    ]
    text = HEAD.replace("kernel/workqueue.c", "Documentation/core-api/workqueue.rst")
    assert ranges(f"{text}@@ -1 +1 @@\n-a\n+b\n") == []


def test_changes_outside_of_functions_and_of_other_files_are_lines_of_no_function() -> None:
    assert ranges(HEAD + STRUCT) == [("C", "kernel/workqueue.c", "", 181, 181)]
    options = HEAD.replace("kernel/workqueue.c", "init/Kconfig")
    assert ranges(f"{options}@@ -5 +5 @@ config X(y)\n-\tbool\n+\ttristate\n") == [
        ("B", "init/Kconfig", "", 5, 5),
        ("C", "init/Kconfig", "", 5, 5),
    ]


def test_new_and_removed_files_have_one_side() -> None:
    new = HEAD.replace("--- a/kernel/workqueue.c", "--- /dev/null")
    assert ranges(f"{new}@@ -0,0 +1,2 @@\n+int f(void)\n+{{\n") == [("C", "kernel/workqueue.c", "f", 1, 1)]
    old = HEAD.replace("+++ b/kernel/workqueue.c", "+++ /dev/null")
    assert ranges(f"{old}@@ -1,1 +0,0 @@\n-int x;\n") == [("B", "kernel/workqueue.c", "", 1, 1)]
    odd = HEAD.replace("+++ b/kernel/workqueue.c", '+++ "b/kernel/w\\303\\251.c"')
    assert ranges(f"{odd}@@ -1,0 +1,1 @@\n+int x;\n") == [("C", UNREADABLE, "", 1, 1)]


def test_removed_line_that_looks_like_the_name_of_a_file_is_a_line() -> None:
    patch = f"{HEAD}@@ -1,2 +1,1 @@ void f(void)\n--- a/x;\n-++ b;\n+c();\n"
    assert [each.arm for each in changed_lines(patch)] == [Arm.BASELINE, Arm.CANDIDATE]
    assert ranges(patch)[0][-2:] == (1, 2)


def test_no_line_is_listed_if_a_series_changes_too_many() -> None:
    apart = "".join(f"+\tx{number}();\n \ty();\n" for number in range(4001))
    assert changed_lines(f"{HEAD}@@ -1 +1 @@ void f(void)\n{apart}") == []
    many = "".join(f"+\tx{number}();\n" for number in range(20_001))
    assert changed_lines(f"{HEAD}@@ -1 +1 @@ void f(void)\n{many}") == []
