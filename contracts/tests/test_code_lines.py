"""Hunks that change what the kernel does, and hunks that change comments, messages and the like only."""

from __future__ import annotations

import time
import timeit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wqlab_contracts.code_lines import Hunk, lost_arguments
from wqlab_contracts.diffstat import changed_files


def lines_of(hunk: str) -> list[tuple[str, str]]:
    return [(line[:1], line[1:]) for line in hunk.strip("\n").split("\n")]


NOTHING = {
    "words of a comment in a function": " \t/*\n-\t * recieve\n+\t * receive\n \t */\n \tx();",
    "hunk within a comment": "  * The first line\n- * old\n+ * new\n  *\n  * last",
    "table in a comment": "- * the old\n+ * the new\n  * words:\n  *\tone - any node\n  *\ttwo - any node",
    "hunk that ends a comment": "- * @cpu: the CPU's number\n  */\n int f(int x)\n {",
    "hunk that begins a comment": " }\n \n+/**\n+ * f - it's new\n+ * @x: what\n+ */\n int f(int x)",
    "comment behind code": "-\tx = 1;\t/* one */\n+\tx = 1;\t/* first */",
    "comment of two slashes": "+// SPDX-License-Identifier: GPL-2.0\n #include <linux/cpu.h>",
    "comment added in lines": " \ta();\n+\t/* wait for\n+\t * it */\n \tb();",
    "includes": "-#include <linux/cpu.h>\n+#include <linux/smp.h>\n+# include \"x.h\"\n \n struct x;",
    "description of a module": ' MODULE_LICENSE("GPL");\n-MODULE_AUTHOR("A (b; c)");\n+MODULE_DESCRIPTION("x; y");',
    "description in two lines": '+MODULE_DESCRIPTION("one"\n+\t\t   " two");\n MODULE_LICENSE("GPL");',
    "license": '-EXPORT_SYMBOL(f);\n+EXPORT_SYMBOL_GPL(f);',
    "white space": "-\tif (x)\n-\t\tf(a, b);\n+\tif (x)\n+\t\tf(a,\n+\t\t  b);",
    "blank lines": " \ta();\n+\n \tb();",
    "words of a message": '-\tpr_warn("can not aquire %d\\n", x);\n+\tpr_warn("cannot acquire %d\\n", x);',
    "message in one line": '-\tpr_warn("cannot "\n-\t\t"acquire it");\n+\tpr_warn("cannot acquire it");',
    "pointer to const": "-static int cmp(struct list_head *a)\n+static int cmp(const struct list_head *a)",
    "annotation": "-static u64 f(struct task_struct *t)\n+static u64 __maybe_unused f(struct task_struct *t)",
    "section's name in quotation marks": '-int x __section(.data.once);\n+int x __section(".data.once");',
    "annotation in a line": " static void f(struct rq *rq)\n+\t__acquires(&rq->lock)\n {",
    "annotation with arguments": "-\t__releases(a)\n-\t__must_hold(b)\n+\t__must_hold(a->b)\n {",
}  # fmt: skip
SOMETHING = {
    "statement": "+\tf();",
    "statement and comment": " \t/*\n-\t * old\n+\t * new\n \t */\n-\tx();\n+\ty();",
    "statement moved over another": "-\tspin_lock(&a);\n \tx();\n+\tspin_lock(&a);",
    "name in a string": '-\twq = alloc_workqueue("a", 0, 0);\n+\twq = alloc_workqueue("b", 0, 0);',
    "macro": "-#define LIMIT 4\n+#define LIMIT 8",
    "code that a comment disabled": "-\t/* f(); */\n+\tf();",
    "pointer in the first column of the hunk": "-\t*x = 1;\n+\t*x = 2;",
    "section": "-int f(void)\n+int __cpuidle f(void)",
    "section of a variable": '-int x __section(".data");\n+int x __section(".data..read_mostly");',
    "argument": "-\tf(a, 1);\n+\tf(a, 2);",
    "argument that others keep": "-\tf(a, 1);\n+\tf(a);",
}


@pytest.mark.parametrize("hunk", NOTHING.values(), ids=NOTHING)
def test_hunk_that_does_nothing(hunk: str) -> None:
    assert not any(Hunk(lines_of(hunk)).significant_lines())


@pytest.mark.parametrize("hunk", SOMETHING.values(), ids=SOMETHING)
def test_hunk_that_changes_code(hunk: str) -> None:
    lines = lines_of(hunk)
    changed = [
        text for (_, text), significant in zip(lines, Hunk(lines).significant_lines(), strict=True) if significant
    ]
    assert changed and not any(text.strip().startswith("* ") for text in changed)


REMOVED_PARAMETER = """\
diff --git a/kernel/workqueue.c b/kernel/workqueue.c
--- a/kernel/workqueue.c
+++ b/kernel/workqueue.c
@@ -5124,7 +5124,6 @@ static void wqattrs_actualize_cpumask(struct workqueue_attrs *attrs,
  * wq_calc_pod_cpumask - calculate a wq_attrs' cpumask for a pod
  * @attrs: the wq_attrs of the default pwq of the target workqueue
  * @cpu: the target CPU
- * @cpu_going_down: if >= 0, the CPU to consider as offline
  *
  * Calculate the cpumask workqueues with @attrs should use on @pod.
  */
@@ -5140,4 +5139,3 @@ static void wqattrs_actualize_cpumask(struct workqueue_attrs *attrs,
-static void wq_calc_pod_cpumask(struct workqueue_attrs *attrs, int cpu,
-                                int cpu_going_down)
+static void wq_calc_pod_cpumask(struct workqueue_attrs *attrs, int cpu)
 {
         const struct wq_pod_type *pt = &wq_pod_types[attrs->affn_scope];
@@ -5210,3 +5208,3 @@ apply_wqattrs_prepare(struct workqueue_struct *wq,
                 } else {
-                        wq_calc_pod_cpumask(new_attrs, cpu, -1);
+                        wq_calc_pod_cpumask(new_attrs, cpu);
                         ctx->pwq_tbl[cpu] = alloc_unbound_pwq(wq, new_attrs);
@@ -5335,3 +5333,3 @@ static void wq_update_pod(struct workqueue_struct *wq, int cpu,
         /* nothing to do if the target cpumask matches the current pwq */
-        wq_calc_pod_cpumask(target_attrs, cpu, off_cpu);
+        wq_calc_pod_cpumask(target_attrs, cpu);
         if (wqattrs_equal(target_attrs, unbound_pwq(wq, cpu)->pool->attrs))
"""


def test_unused_parameter_that_is_removed_changes_no_code() -> None:
    (change,) = changed_files(REMOVED_PARAMETER)
    assert not change.changes_code and change.symbols == []


def test_parameter_that_was_used_changes_the_code_that_used_it() -> None:
    used = REMOVED_PARAMETER.replace("-5140,4 +5139,3", "-5140,5 +5139,3").replace(
        "         const struct wq_pod_type",
        "-\tcpumask_clear_cpu(cpu_going_down, attrs->cpumask);\n         const struct wq_pod_type",
    )
    (change,) = changed_files(used)
    assert change.changes_code and change.symbols == ["wq_calc_pod_cpumask"]


@pytest.mark.parametrize(
    ("hunk", "lost"),
    [
        ("-int f(int a, int b)\n+int f(int a)", {"f"}),
        ("-int f(int a)\n+int f(void)", {"f"}),
        (" static int\n f(\n \tstruct a\t*a,\n-\tstruct b\t*b,\n \tint\tc)", {"f"}),
        ("-struct a *f(int a);\n+struct a *f(void);", {"f"}),
        ("-static inline int f(int a) { return 0; }\n+static inline int f(void) { return 0; }", {"f"}),
        ("-int f(int (*g)(int, int), int b);\n+int f(int (*g)(int, int));", {"f"}),
        ("-int f(int a)\n+int f(int a, int b)", set()),
        ("-int f(int a, int b)\n+int f(long a)", set()),
        ("-\tf(a, b);\n+\tf(a);", set()),
    ],
)
def test_functions_that_lost_a_parameter(hunk: str, lost: set[str]) -> None:
    assert lost_arguments([Hunk(lines_of(hunk))]) == lost


@given(
    st.lists(
        st.tuples(st.sampled_from("+- "), st.text(alphabet=" \t{}()#/*=;,'\"\\aM_\r\x0b", max_size=30)), max_size=30
    )
)
def test_any_hunk_has_a_flag_for_each_line(lines: list[tuple[str, str]]) -> None:
    found = Hunk(lines).significant_lines({"a"})
    assert len(found) == len(lines)
    assert not any(flag for (mark, _), flag in zip(lines, found, strict=True) if mark == " ")


@pytest.mark.parametrize("pump", ["/*", '"', "'", "f(", "MODULE_X(", "a ", "f(int a,", "\\", "a(b)", "EXPORT_SYMBOL("])
def test_hostile_hunks_take_about_the_time_of_ordinary_ones(pump: str) -> None:
    def seconds(text: str) -> float:
        lines = [("+", text), *((("-", text),) * 20)]
        return min(
            timeit.repeat(
                lambda: (Hunk(lines).significant_lines({"f"}), lost_arguments([Hunk(lines)])),
                number=1,
                repeat=3,
                timer=time.process_time,
            )
        )

    ordinary = seconds("static bool flush_workqueue_prep_pwqs(struct workqueue_struct *wq, int color);" * 250)
    assert seconds(pump * (20_000 // len(pump))) < 50 * ordinary
