"""Patterns of the lines that begin, name and end kernel reports.

Message formats are those of Linux 6.1 to 7.x: kernel/panic.c, lib/bug.c, lib/ubsan.c, arch/*/mm/fault.c,
arch/*/kernel/traps.c, kernel/locking/lockdep.c, kernel/hung_task.c, kernel/watchdog.c, kernel/workqueue.c,
kernel/rcu/tree_stall.h, kernel/irq/spurious.c, kernel/smp.c, mm/kasan/report.c, mm/slub.c. Lines of programs and
drivers that quote such a message are no reports: a message has to begin with it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..enums import FindingKind
from ..linear_patterns import LinearPattern

CUT_HERE = LinearPattern(r"^(?:-{8,}\[ cut here \]-{8,}|8<--- cut here ---)\s*$", ["cut here"])
RULE = LinearPattern(r"={20,}\s*$", ["==="])
END_TRACE = LinearPattern(r"---\[ end trace (?:[0-9a-f]+ )?\]---\s*$", ["---[ end trace"])
END_PANIC = LinearPattern(
    r"---\[ end Kernel panic - not syncing|^Rebooting in \d+ seconds\.\.", ["---[ end Kernel", "Rebooting"]
)
END_TASK = LinearPattern(r"^ *</TASK>\s*$", ["</TASK>"])
TRACE = LinearPattern(r"^Call [Tt]race:\s*$", ["Call "])
MARKED_TRACE = LinearPattern(r"^ *<(?:TASK|IRQ|NMI)>\s*$", [">"])
"""Trace of x86, whose end is marked."""
FRAME = LinearPattern(
    r"^\s*(?:\(?\[<?[0-9a-f]{6,16}>?\] *){0,2}\(?(?:\? )?(?:[\w.$]+\+0x[0-9a-f]+/0x[0-9a-f]+|0x[0-9a-f]+\b"
    r"|[\w.$]+ (?:from [\w.$]+\+0x|\(?[\w./-]+\.[chSs]:\d))"
    # registers and code of the context that was interrupted, by architecture
    r"|^(?:[RE]IP|RSP|RAX|RBX|RDX|RBP|R\d\d|[CFD][SR]\d?|PKRU|Code|NIP|LR|REGS|MSR|CFAR|DAR|GPR\d\d|Exception stack"
    r"|[0-9a-f]{4}|Last Breaking-Event-Address|User PSW|Krnl PSW) ?[:( \[]|^--- interrupt|^ *</?(?:EOI|SOFTIRQ)>"
)
"""Line of a trace."""
DIED = LinearPattern(r"\[#\d+\]", ["[#"])
"""Number that every oops has."""
_RESET = LinearPattern(
    r"^(?:Linux version \d|Booting Linux on physical CPU|SeaBIOS \(version|UEFI firmware \(version|U-Boot \d{4}\."
    r"|BdsDxe: |iPXE \d|GNU GRUB +version|NOTICE:  BL\d|reboot: Restarting system|Decompressing Linux)"
)
ONE_LINE = LinearPattern(
    r"^BUG: (?:Bad rss-counter state|non-zero pgtables_bytes|recent printk recursion)"
    r"|^VFS: (?:Busy inodes after unmount|Close: file count is)",
    ["BUG: ", "VFS: "],
)
"""Reports of one line."""

_SUBSYSTEM = r" ?(?:(?:NMI )?watchdog: (?:CPU\d+: )?|rcu: |smp: |workqueue: |traps: |\[ )?"
"""What the kernel prints before some of its messages."""
_LOCKDEP = (
    r"possible (?:circular locking dependency|recursive locking|irq lock inversion dependency) detected"
    r"|possible irq lock inversion dependency detected|inconsistent lock state|chain_key collision"
    r"|(?:SOFT|HARD)IRQ-safe -> (?:SOFT|HARD)IRQ-unsafe lock order detected|suspicious (?:RCU|rcu_\w+\(\)) usage\.?"
    r"|bad unlock balance detected!|bad contention detected!|held lock freed!|Nested lock was not taken"
    r"|lock held when returning to user space!|lock held at task exit time, still held!|.+/\d+ still has locks held!"
)


@dataclass(frozen=True)
class Rule:
    """A pattern of kernel messages that begin a report, and the kind of that report."""

    kind: FindingKind
    pattern: LinearPattern
    fatal: bool
    text: str


def _rule(kind: FindingKind, pattern: str, *, fatal: bool = False) -> Rule:
    return Rule(kind, LinearPattern(f"^{_SUBSYSTEM}({pattern})"), fatal, pattern)


_RULES = (
    _rule(FindingKind.PANIC, r"Kernel panic - not syncing(?:: .*)?$", fatal=True),
    _rule(FindingKind.KASAN, r"BUG: (?:KASAN|KFENCE): \S.*$"),
    _rule(FindingKind.LOCKUP, r"Watchdog detected hard LOCKUP on cpu \d+.*$", fatal=True),
    _rule(FindingKind.LOCKUP, r"CPU \d+ (?:self-)?detected hard LOCKUP (?:@|on) .*$", fatal=True),  # powerpc
    _rule(FindingKind.LOCKUP, r"BUG: soft lockup (?:- CPU#\d+ stuck for \d+s!|detected on CPU#\d).*$"),
    _rule(FindingKind.LOCKUP, r"csd: Detected non-responsive CSD lock \(#\d+\) on CPU#.*$"),
    _rule(FindingKind.WORKQUEUE_STALL, r"BUG: workqueue lockup - pool.*$"),
    _rule(FindingKind.OOPS, r"BUG: [Kk]ernel NULL pointer.*$", fatal=True),
    _rule(FindingKind.OOPS, r"BUG: [Uu]nable to handle (?:page fault|kernel) .*$", fatal=True),
    _rule(FindingKind.OOPS, r"BUG: .*stack guard page was hit at .*$", fatal=True),
    # loongarch and mips begin with the CPU.
    _rule(
        FindingKind.OOPS,
        r"(?:CPU \d+ )?Unable to handle kernel (?:NULL pointer|paging request|pointer|read|write|access|execut).*$",
        fatal=True,
    ),
    _rule(FindingKind.OOPS, r"Unhandled (?:prefetch abort|fault)\b.* at 0x[0-9a-f]+\s*$", fatal=True),
    _rule(FindingKind.OOPS, r"PANIC: (?:early exception|double fault)\b.*$", fatal=True),
    # All of die(): `Oops: invalid opcode: 0000 [#1] SMP NOPTI`, `stack guard page: 0000 [#1] PREEMPT SMP`.
    # arm64 since 6.13: `Internal error: UBSAN: array index out of bounds: 00000000f2005512 [#1]  SMP`.
    _rule(FindingKind.OOPS, r"[A-Za-z].*: [0-9a-f]{1,16}(?: ilc:\d)? \[#\d+\](?: *[A-Z_]{2,}\S*)*\s*$", fatal=True),
    _rule(FindingKind.OOPS, r"(?:Oops: )?general protection fault, (?:probably|maybe) for .*$", fatal=True),
    _rule(FindingKind.OOPS, r"(?:Oops|Internal error|Kernel BUG)\b.*\[#\d+\].*$", fatal=True),
    _rule(FindingKind.BUG, r"kernel BUG at \S+(?::\d+!| \[verbose debug info unavailable\])\s*$", fatal=True),
    # Kernels before 4.11: `[ INFO: possible recursive locking detected ]`
    _rule(FindingKind.LOCKDEP, rf"(?:WARNING|INFO): (?:{_LOCKDEP})(?: \])?\s*$"),
    _rule(FindingKind.LOCKDEP, r"INFO: trying to register non-static key\.\s*$"),
    _rule(
        FindingKind.LOCKDEP,
        rf"BUG: (?:Invalid wait context|MAX_LOCK\w+ too low!|MAX_STACK_TRACE_ENTRIES too low!|{_LOCKDEP}).*$",
    ),
    _rule(FindingKind.BUG, r"BUG: \S.*$"),
    _rule(FindingKind.BUG, r"BUG [^:]{1,80} \((?:Not tainted|Tainted: [^)]*)\): \S.*$"),
    _rule(FindingKind.BUG, r"UBSAN: \S.* in \S.*$"),
    _rule(FindingKind.BUG, r"VFS: (?:Busy inodes after unmount of|Close: file count is) .*$"),
    _rule(
        FindingKind.WARNING,
        r"WARNING: (?:CPU: \d+ PID: \d+ at +\S+:\d|(?:\[.*\] )?\S+\.[chSs]:\d+ at +\S).*$"
        r"|WARNING: at \S+\.[chSs]:\d+(?: [A-Za-z_][\w.]*\+0x.*)?\s*$"  # before 3.12
        r"|WARNING: (?:CPU: \d+ PID: \d+ at |(?:\[.*\] )?at )"
        # the function, or what scripts/decode_stacktrace.sh and syzbot have made of it
        r"(?:\S+\+0x[0-9a-f]+/0x[0-9a-f]+|(?:0x)?[0-9a-f]+\b|[A-Za-z_][\w.]* \(?[\w./-]+\.[chS]:\d).*$",
    ),
    _rule(FindingKind.WARNING, r"irq \d+: nobody cared.*$|irq event \d+: bogus return value [0-9a-f]+\s*$"),
    _rule(
        FindingKind.HUNG_TASK,
        r"INFO: task .*:\d+ (?:blocked(?: in I/O wait)?|can't die) for more than \d+ seconds\.\s*$",
    ),
    _rule(
        FindingKind.RCU_STALL,
        r"INFO: rcu\w* (?:self-detected stall on CPU|detected (?:expedited )?stalls?(?: on\b|, but suppressed)).*$",
    ),
)
_ANY_RULE = LinearPattern(f"^{_SUBSYSTEM}(?:" + "|".join(f"(?:{rule.text})" for rule in _RULES) + ")")
"""Matches every line that a rule matches; nearly all lines match none."""


def classify(message: str) -> tuple[Rule | None, str]:
    """Return the rule that a message matches, and the title of its report."""
    for rule in _RULES if _ANY_RULE.match(message) else ():
        if match := rule.pattern.match(message):
            return rule, match[1].strip().removesuffix(" ]").rstrip()
    return None, ""


_CUT_OFF_NAME = LinearPattern(r"^INFO: task .{0,16}$", ["INFO: task"])
_TITLE = LinearPattern(
    rf"^{_SUBSYSTEM}(?:BUG: |WARNING: (?:CPU: \d|\S+:\d+ ?(?:at|$)|\[|at |possible |inconsistent |suspicious "
    r"|[A-Z]+-safe |bad |held |lock held|Nested )|INFO: (?:task|rcu)|(?:CPU \d+ )?Unable to handle |Unhandled "
    r"|Internal error: |Oops(?:[^#]|$)|general protection fault|invalid (?:opcode|$)"
    r"|Kernel panic - |UBSAN: |kernel BUG at)"
)
_DANGLING = LinearPattern(
    r"(?:address:|KASAN:|NULL(?: pointer)?"
    r"| (?:at|for|in|on|of|by|code:|virtual|address|dereference|request|memory|\S+:\d+)"
    r"| -| syncing:|,| \d+s!|\(try)\s*$"
)
"""End of a line at which no title ends."""
_WRAPPED_COLUMNS = 60
"""A mail program wraps a line if this many columns are too few for the next word."""


def is_cut_off(message: str, *, complete: bool) -> bool:
    """Return True if the rest of a title may be on the next line: of a task's name, which may contain a line end, or
    because a mail program has wrapped it. `complete`: a rule matches the message already."""
    if complete:
        return _DANGLING.search(message) is not None
    return _CUT_OFF_NAME.match(message) is not None or _TITLE.match(message) is not None


def may_be_wrapped(first: str, second: str) -> bool:
    """Return True if a mail program may have wrapped a line into these two."""
    return first.endswith(" ") or len(first) + 1 + len(second.split(" ", 1)[0]) > _WRAPPED_COLUMNS


UNFINISHED_STALL = LinearPattern(r"^BUG: workqueue lockup - pool(?:.*[^!])?$", ["workqueue lockup"])
"""The kernel prints this title in pieces; lines of others may come between them."""
STALL_PIECE = LinearPattern(r"^ ?(?:cpus|node|flags|nice|pool|stuck)\b")


IRQ_HANDLER = LinearPattern(r"^\[<[0-9a-f(){}ptrval_]+>\] \S")
"""A handler in the report `irq N: nobody cared`."""

_LEADS = (
    (r"^SError Interrupt on CPU\d+, code ", 60),
    (r"^Insufficient stack space to handle exception!", 60),
    (r"^Unhandled \S+ \S+ \S+ exception on CPU\d+|^Bad mode in .* handler detected on CPU\d+", 60),
    (r"^Unexpected kernel \w+ exception at EL1|^kernel tried to execute NX-protected page", 6),
    (r"^(?:page: ?\S* ?refcount:|vma [0-9a-f]{8,} |mm [0-9a-f]{8,} )", 40),
    (r"^CFI failure at \S+ \(target: ", 6),
    (r"^usercopy: Kernel memory (?:exposure|overwrite) attempt detected", 4),
    (r"^(?:slab: )?list_(?:add|del)(?: double add| corruption)[.:,]", 4),
    (r"^skbuff: skb_(?:over|under)_panic: |^detected buffer overflow in |^virt_to_phys used for ", 4),
    (r"^(?:[\w-]+(?: \([\w!:-]+\))?: )?[Aa]ssertion (?:failed|failure)\b", 4),
    (r"^rust_kernel: panicked at |^kasan: |^KASAN: |^Corrupted low memory at |^corrupted preempt_count: ", 4),
)
"""Messages that the kernel prints before the line that names a report's kind, and the most lines between the two."""
_LEAD = LinearPattern("|".join(f"({pattern})" for pattern, _ in _LEADS))
_FIRST_WORDS = (
    "8<--- BUG Bad Booting BdsDxe CFI CPU Corrupted Decompressing GNU INFO Insufficient Internal KASAN Kernel Linux "
    "NMI NOTICE Oops PANIC SError SeaBIOS U-Boot UBSAN UEFI Unable Unexpected Unhandled VFS: WARNING Watchdog ===== "
    "----- corrupted detected general iPXE invalid irq kasan kernel list_ mm page reboot rcu rust_kernel skbuff slab "
    "smp: traps usercopy virt_to vma watchdog workqueue"
)
_BEGINNINGS = ("[ ", *_FIRST_WORDS.split())


def may_begin(message: str) -> bool:
    """Return False if no pattern of this module but those within a report can match. It is quick: nearly all lines are
    such."""
    return message.lstrip(" ").startswith(_BEGINNINGS) or " [#" in message or "ssertion fail" in message


def begins_report(message: str) -> bool:
    """Return True for a message that is or may be the first line of a report."""
    return bool(
        CUT_HERE.search(message)
        or RULE.match(message)
        or lead_lines(message)
        or classify(message)[0]
        or is_cut_off(message, complete=False)
    )


def is_reset(message: str) -> bool:
    """Return True for the first line of a kernel or firmware: the machine has been reset."""
    return _RESET.match(message) is not None


def lead_lines(message: str) -> int:
    """Return in how many lines the kind must follow a message that comes before it; 0 if it is no such message."""
    found = _LEAD.match(message)
    return next((lines for group, (_, lines) in zip(found.groups(), _LEADS, strict=True) if group), 0) if found else 0
