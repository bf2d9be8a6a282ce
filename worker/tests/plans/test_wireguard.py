"""Script of plan wireguard: its readings of traces, interface counters and the cpumask of unbound workqueues."""

from __future__ import annotations

from pathlib import Path

import pytest

from .scripts import AWKS, call, plan, trace

NAME = "wireguard"
TRACE = """\
# tracer: nop
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
         netperf-197     [001] d.s..   247.376070: workqueue_queue_work: work struct=00000000c1559fee function=wg_packet_encrypt_worker [wireguard] workqueue=wg-crypt-wqlab-wg0 req_cpu=0 cpu=0
     kworker/0:1-19      [000] .....   247.376090: workqueue_execute_start: work struct 00000000c1559fee: function wg_packet_encrypt_worker [wireguard]
     kworker/0:1-19      [000] .....   247.376099: workqueue_execute_start: work struct 00000000c1550000: function vmstat_update
     kworker/0:1-19      [000] d....   247.376190: workqueue_queue_work: work struct=00000000c15aaaaa function=wg_packet_tx_worker [wireguard] workqueue=wg-crypt-wqlab-wg0 req_cpu=1 cpu=1
     kworker/1:1-19      [001] .....   247.376290: workqueue_execute_start: work struct 00000000c15aaaaa: function wg_packet_tx_worker [wireguard]
     kworker/1:1-19      [001] d.s..   247.376300: workqueue_queue_work: work struct=00000000c15bbbbb function=wg_packet_decrypt_worker [wireguard] workqueue=wg-crypt-wqlab-wg1 req_cpu=1 cpu=1
     kworker/1:1-19      [001] .....   247.377533: workqueue_execute_start: work struct 00000000c15bbbbb: function wg_packet_decrypt_worker [wireguard]
            wg-180       [001] d....   247.477533: workqueue_queue_work: work struct=00000000c15ccccc function=wg_packet_handshake_send_worker [wireguard] workqueue=wg-kex-wqlab-wg0 req_cpu=8192 cpu=1
"""  # noqa: E501 - as the kernel prints them


def test_reference_is_the_kernels_own_mask() -> None:
    assert plan(NAME).reference_setting == "unbound_cpus=default"
    assert [axis.values for axis in plan(NAME).axes] == [["default", "half"]]


@pytest.mark.parametrize("awk", AWKS)
def test_works_are_told_apart_by_function(tmp_path: Path, awk: str) -> None:
    trace(tmp_path, TRACE)
    found = call(NAME, f"AWK='{awk}'\nreduce_trace", tmp_path)
    assert sorted(found.frame("pairs")) == ["1 0 1", "1 1 1"]
    assert sorted(found.frame("histogram queue_to_start_us")) == ["1230 1", "20 1"]
    assert found.values == {
        "encrypt_works": 1,
        "decrypt_works": 1,
        "transmit_works": 1,
        "handshake_works": 1,
        "works_queued": 4,
        "works_started": 3,
    }


QUEUED_AGAIN = """\
         netperf-197     [001] d.s..   247.376000: workqueue_queue_work: work struct=00000000c1559fee function=wg_packet_encrypt_worker [wireguard] workqueue=wg-crypt-wqlab-wg0 req_cpu=0 cpu=0
     kworker/0:1-19      [000] d.s..   247.376100: workqueue_queue_work: work struct=00000000c1559fee function=wg_packet_encrypt_worker [wireguard] workqueue=wg-crypt-wqlab-wg0 req_cpu=0 cpu=0
     kworker/0:1-19      [000] .....   247.376150: workqueue_execute_start: work struct 00000000c1559fee: function wg_packet_encrypt_worker [wireguard]
     kworker/0:1-19      [000] .....   247.376400: workqueue_execute_start: work struct 00000000c1559fee: function wg_packet_encrypt_worker [wireguard]
"""  # noqa: E501 - as the kernel prints them


@pytest.mark.parametrize("awk", AWKS)
def test_work_that_is_queued_again_before_the_event_of_its_start_counts_twice(tmp_path: Path, awk: str) -> None:
    """The kernel ends that a work is pending before it prints that the work starts."""
    trace(tmp_path, QUEUED_AGAIN)
    found = call(NAME, f"AWK='{awk}'\nreduce_trace", tmp_path)
    assert sorted(found.frame("pairs")) == ["0 0 1", "1 0 1"]
    assert sorted(found.frame("histogram queue_to_start_us")) == ["150 1", "300 1"]
    assert (found.values["works_queued"], found.values["works_started"]) == (2, 2)


@pytest.mark.parametrize(
    ("name", "instead", "reason"),
    [
        ("c15bbbbb", "(____ptrval____)", "hides the work pointers"),
        ("wg_packet_encrypt_worker [wireguard]", "0xffffffffc0001230", "does not name the functions"),
    ],
)
def test_trace_without_names_is_unsupported(tmp_path: Path, name: str, instead: str, reason: str) -> None:
    trace(tmp_path, TRACE.replace(f"00000000{name}" if name.startswith("c") else name, instead))
    found = call(NAME, "reduce_trace", tmp_path)
    assert [metric for metric, _ in found.unsupported] == ["traced"]
    assert reason in found.unsupported[0][1]
    assert found.values == {}


def test_kernel_without_the_events_is_unsupported(tmp_path: Path) -> None:
    (tmp_path / "tracing/events").mkdir(parents=True)
    (tmp_path / "tracing/tracing_on").touch()
    found = call(NAME, "trace_start || record fact status $?", tmp_path, TRACE_KIB="64")
    assert found.unsupported == [("traced", "this kernel's workqueue_queue_work names no workqueue")]
    assert found.facts == {"status": "1"}


@pytest.mark.parametrize("awk", AWKS)
def test_packets_are_lost_between_the_ends_or_refused(tmp_path: Path, awk: str) -> None:
    """Ends: packets sent, refused and received, and bytes sent. 2 of 10 and 1 of 5 packets do not arrive."""
    command = f"AWK='{awk}'\npacket_records '1 0 1 100 1 0 1 7' '11 1 5 1100 6 0 9 7'"
    found = call(NAME, command, tmp_path)
    assert found.values == {"tunnel_packets": 15, "packets_lost": 4, "packets_refused": 1, "tunnel_bytes": 1000}


@pytest.mark.parametrize("space", ["", " "])
def test_counts_of_an_interface_are_read(tmp_path: Path, space: str) -> None:
    netdev = tmp_path / "dev"
    netdev.write_text(
        "Inter-|   Receive                            |  Transmit\n"
        " face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls carrier compressed\n"  # noqa: E501
        "    lo:  9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9\n"
        f"wqlab-wg0:{space}111 2 0 1 0 0 0 0 333 4 5 6 0 0 0 0\n"
    )
    found = call(NAME, 'record fact counts "$(statistics wqlab-wg0)"', tmp_path, NETDEV=str(netdev))
    assert found.facts["counts"] == "4 11 2 333"


def place(
    folder: Path, online: str, mask: str | None, setting: str, before: str = "", between: str = ""
) -> tuple[dict[str, str], list[str]]:
    """Run `place` and `placed`, with commands before and between them.

    Return the settings before and after the workload with the mask, and the reasons of what is unsupported.
    """
    files = {"devices/system/cpu/online": online, "devices/virtual/workqueue/cpumask": mask}
    for name, text in files.items():
        if text is not None:
            path = folder / "sys" / name
            path.parent.mkdir(parents=True)
            path.write_text(f"{text}\n")
    keep = '[ ! -e "$MASK" ] || cat "$MASK" >"$INITIAL"'
    report = '[ ! -e "$MASK" ] || record fact mask "$(cat "$MASK")"'
    command = "\n".join([keep, before, f"if place; then {between or ':'}; placed; fi", report])
    found = call(NAME, command, folder, SYS=str(folder / "sys"), SETTING_UNBOUND_CPUS=setting)
    after = {f"{name} after": value for name, value in found.settings_after.items()}
    return {**found.settings, **after, **found.facts}, [reason for _, reason in found.unsupported]


@pytest.mark.parametrize(
    ("online", "mask", "setting", "expected"),
    [
        ("0-3", "f", "default", "f"),
        ("0-3", "f", "half", "3"),
        ("0-2", "7", "half", "3"),
        ("0", "1", "half", "1"),
        ("0,2,4,6", "55", "half", "5"),
        ("0-71", "ff,ffffffff,ffffffff", "half", "f,ffffffff"),
    ],
)
def test_unbound_workqueues_get_their_cpus(tmp_path: Path, online: str, mask: str, setting: str, expected: str) -> None:
    facts = {"unbound_cpus": setting, "unbound_cpus after": setting, "mask": expected}
    assert place(tmp_path, online, mask, setting) == (facts, [])


def test_default_returns_to_the_kernels_mask(tmp_path: Path) -> None:
    found, _ = place(tmp_path, "0-3", "f", "default", before='echo 3 >"$MASK"')
    assert found["mask"] == "f"


def test_mask_that_changes_meanwhile_is_reported(tmp_path: Path) -> None:
    found, _ = place(tmp_path, "0-3", "f", "half", between='echo 8 >"$MASK"')
    assert (found["unbound_cpus"], found["unbound_cpus after"]) == ("half", "8")


def test_kernel_without_a_mask_runs_with_its_default_only(tmp_path: Path) -> None:
    default, half = tmp_path / "default", tmp_path / "half"
    default.mkdir()
    half.mkdir()
    settings = {"unbound_cpus": "default", "unbound_cpus after": "default"}
    assert place(default, "0-3", None, "default") == (settings, [])
    found, [reason] = place(half, "0-3", None, "half")
    assert found == {}
    assert reason.endswith("has no cpumask of all unbound workqueues in sysfs")


def test_kernel_that_ignores_the_mask_is_unsupported(tmp_path: Path) -> None:
    found, [reason] = place(tmp_path, "0-3", "f", "half", before="has_mask() { false; }")
    assert "unbound_cpus" not in found
    assert reason.endswith("for unbound workqueues when 3 is requested")
