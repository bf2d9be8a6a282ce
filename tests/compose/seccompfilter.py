"""Compile the seccomp profile on standard input, for a container without capabilities on amd64, to the BPF program
that bubblewrap's --seccomp reads, on standard output.

Runs under Debian's own Python, which has the binding of libseccomp (python3-seccomp).
"""

import json
import sys
from typing import Any

import seccomp

COMPARE = {"SCMP_CMP_EQ": seccomp.EQ, "SCMP_CMP_LT": seccomp.LT, "SCMP_CMP_GT": seccomp.GT}


def applies(rule: dict[str, Any]) -> bool:
    return not rule.get("includes", {}).get("caps") and "amd64" not in rule.get("excludes", {}).get("arches", [])


def condition(argument: dict[str, Any]) -> seccomp.Arg:
    if argument["op"] == "SCMP_CMP_MASKED_EQ":
        return seccomp.Arg(argument["index"], seccomp.MASKED_EQ, argument["value"], argument.get("valueTwo", 0))
    return seccomp.Arg(argument["index"], COMPARE[argument["op"]], argument["value"])


def known(name: str) -> bool:
    """Return True if libseccomp knows the system call on this architecture."""
    try:
        return bool(seccomp.resolve_syscall(seccomp.Arch.NATIVE, name) >= 0)
    except ValueError:
        return False


def main() -> None:
    profile = json.load(sys.stdin)
    compiled = seccomp.SyscallFilter(seccomp.ERRNO(profile["defaultErrnoRet"]))
    for rule in filter(applies, profile["syscalls"]):
        allowed = rule["action"] == "SCMP_ACT_ALLOW"
        for name in rule["names"]:
            if known(name):
                action = seccomp.ALLOW if allowed else seccomp.ERRNO(rule["errnoRet"])
                compiled.add_rule(action, name, *map(condition, rule.get("args", [])))
    compiled.export_bpf(sys.stdout)


if __name__ == "__main__":
    main()
