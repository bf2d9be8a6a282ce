"""Functions that a series changes."""

from __future__ import annotations

import pytest

from wqlab_worker.apply.touched_functions import touched_functions

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
