"""Facts that describe how a kernel was measured, and what cuts its history."""

from __future__ import annotations

import pytest

from wqlab_report.parts.environment_facts import NOT_COMPARED
from wqlab_server.views import environment

BOOT = {
    "firmware": "AMI 1.4b (09/08/2022)",
    "microcode": "0xd0003a5",
    "memory": "16x 32 GiB DDR4 at 2933 MT/s",
    "frequency driver": "intel_pstate (active)",
    "boost": "off",
    "idle states": "POLL, C1 (at most 2 us; C6 disabled)",
    "smt": "on",
    "transparent hugepages": "never",
    "ksm": "off",
    "cache allocation": "whole",
}


@pytest.mark.parametrize(
    ("fact", "now"),
    [
        ("firmware", "AMI 1.6 (03/01/2026)"),
        ("microcode", "0xd0003b9"),
        ("memory", "16x 32 GiB DDR4 at 3200 MT/s"),
        ("frequency driver", "intel_pstate (passive)"),
        ("boost", "on (wanted off)"),
        ("idle states", "POLL, C1, C6"),
        ("smt", "off (notsupported) (wanted on)"),
        ("transparent hugepages", "always"),
        ("ksm", "on"),
        ("cache allocation", "L3:0=00f"),
    ],
)
def test_change_of_the_machine_cuts_the_history(fact: str, now: str) -> None:
    assert fact not in NOT_COMPARED
    assert environment.changes(BOOT, BOOT | {fact: now}) == f"{fact} {BOOT[fact]} -> {now}"
    assert environment.digest_of(BOOT) != environment.digest_of(BOOT | {fact: now})


def test_what_a_boot_counts_cuts_nothing() -> None:
    assert {"temperature", "throttled", "memory errors", "conditions put back"} <= NOT_COMPARED
