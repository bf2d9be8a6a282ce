"""Kernel logs of syzkaller's test data, read as the lab does: kind, message and function of the first report.

The logs are other people's and no part of this repository. WQLAB_SYZKALLER names a clone of syzkaller, or its git URL:

    WQLAB_SYZKALLER=~/syzkaller make test-one M=nightly T=contracts/tests/consoles/test_syzkaller_reports.py

A log begins with syzkaller's title. Left out are logs that syzkaller calls corrupted, and titles that are no report of
the kernel, such as those of its own programs.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from wqlab_contracts.consoles.console_reading import ReadReport, read_console

LOGS = "pkg/report/testdata/linux/report"
LEAST_RIGHT = 0.95
_FUNCTION = re.compile(r" in ([A-Za-z_]\w*)")


@dataclass(frozen=True)
class Expected:
    """What a title of syzkaller stands for."""

    title: str
    kinds: str
    message: str
    """Pattern of the kernel's message, in which {1} is the first group of `title`."""


EXPECTED = (
    Expected("KASAN: ", "kasan", "KASAN: "),
    Expected("KFENCE: ", "kasan", "KFENCE: "),
    Expected(r"(KMSAN: \S+|KCSAN: |UBSAN: )", "bug", "{1}"),
    Expected("INFO: rcu detected stall", "rcu_stall", "stall"),
    Expected("INFO: task (?:hung|can't die)", "hung_task", "INFO: task"),
    Expected("WARNING: locking bug", "lockdep warning", ""),
    Expected("possible deadlock|inconsistent lock state|INFO: (?:trying to register|suspicious)", "lockdep", ""),
    Expected("WARNING: (?:suspicious RCU|bad unlock|still has locks|nested lock|held lock|lock held)", "lockdep", ""),
    Expected("BUG: (?:still has locks|lock held|held lock freed|bad unlock|MAX_)", "lockdep", ""),
    Expected("kernel BUG in|BUG: (?:bad usercopy|corrupted list)", "bug oops", "kernel BUG at"),
    Expected("BUG: unable to handle kernel", "oops", "[Uu]nable to handle|NULL pointer"),
    Expected("general protection fault|divide error|int3|stack segment|Internal error|Unhandled fault", "oops", ""),
    Expected("PANIC: double fault|BUG: stack guard", "oops", ""),
    Expected("kernel stack overflow", "oops panic", ""),
    Expected("BUG: soft lockup", "lockup", "soft lockup"),
    Expected("BUG: workqueue lockup", "workqueue_stall", "workqueue lockup"),
    Expected("(?:BUG|VFS): (workqueue leaked|scheduling while|using|sleeping|Bad|Dentry|spinlock|Busy)", "bug", "{1}"),
    Expected("(?:BUG|VFS): (rwlock|Close)", "bug", "{1}"),
    Expected("kernel panic: ", "panic", "Kernel panic"),
    Expected("WARNING(?! in corrupted|: (?:kernel stack|ath10k|foo))", "warning", "WARNING: "),
)


@dataclass(frozen=True)
class Log:
    """A log with the titles that syzkaller gives it; the first one counts."""

    name: str
    titles: list[str]
    data: bytes

    @property
    def expected(self) -> tuple[str, str] | None:
        """Kinds and message of its first report; None if its title names no report of the kernel."""
        for each in EXPECTED:
            if found := re.match(each.title, self.titles[0]):
                return each.kinds, each.message.replace("{1}", next(iter(found.groups()), ""))
        return None


def is_right(log: Log, first: ReadReport | None) -> bool:
    """Return True if a report agrees with a log's title in kind, message and function."""
    assert log.expected is not None
    kinds, message = log.expected
    if first is None or first.kind.value not in kinds.split() or not re.search(message, first.title):
        return False
    functions = [found[1] for title in log.titles if (found := _FUNCTION.search(title))]
    return not functions or any(re.search(rf"\b{name}\b", first.excerpt) for name in functions)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> list[Log]:
    where = os.environ.get("WQLAB_SYZKALLER", "")
    if not where:
        pytest.skip("WQLAB_SYZKALLER names no clone of syzkaller and no git URL of it")
    root = Path(where)
    if not root.is_dir():
        root = tmp_path_factory.mktemp("clone") / "syzkaller"
        command = ["git", "clone", "--quiet", "--depth=1", "--filter=blob:none", "--sparse", where, str(root)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"WQLAB_SYZKALLER={where} cannot be cloned: {done.stderr.strip()[-300:]}")
        subprocess.run(["git", "-C", root, "sparse-checkout", "set", LOGS], check=True, capture_output=True)
    found = [log for path in sorted((root / LOGS).iterdir()) if (log := read_log(path)) is not None]
    assert len(found) > 500, f"{root / LOGS} has {len(found)} logs"
    return found


def read_log(path: Path) -> Log | None:
    head, _, rest = path.read_bytes().replace(b"\r", b"").partition(b"\n\n")
    text = head.decode(errors="replace")
    if "CORRUPTED: Y" in text:
        return None
    titles = re.findall(r"^(?:TITLE|ALT): (.*)$", text, re.MULTILINE)
    return Log(path.name, titles or [""], rest.partition(b"\n\nREPORT:\n")[0] + b"\n")


@pytest.mark.nightly
def test_kind_message_and_function_are_right(logs: list[Log], record_property: Callable[[str, object], None]) -> None:
    judged = [log for log in logs if log.expected is not None]
    wrong = [log for log in judged if not is_right(log, next(iter(read_console(log.data).reports), None))]
    figure = f"{len(judged) - len(wrong)} of {len(judged)} right"
    record_property("syzkaller_reports", figure)
    print(f"syzkaller's logs: {figure}")
    assert len(judged) > 400
    assert len(wrong) <= (1 - LEAST_RIGHT) * len(judged), f"{figure}; wrong: {[(w.name, w.titles[0]) for w in wrong]}"


@pytest.mark.nightly
def test_logs_without_a_title_have_no_report(logs: list[Log]) -> None:
    quiet = [log for log in logs if not log.titles[0]]
    assert quiet and [log.name for log in quiet if read_console(log.data).reports] == []
