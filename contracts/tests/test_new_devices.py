"""Inventories become device types, exporter files and addresses that the loaders accept; mistakes name their place."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pydantic import ValidationError

from wqlab_contracts.addresses_file import read_addresses
from wqlab_contracts.loading import load_data
from wqlab_contracts.new_devices import files, inventory, render
from wqlab_contracts.new_devices.description import Ipmi, NewDevice
from wqlab_contracts.specs import OwnSystem

ROOT = Path(__file__).parents[2]
HEADER = (
    "name,device_type,sockets,l3_per_socket,cores_per_l3,threads_per_core,numa_nodes,numbering,power,bmc,bmc_user,"
    "bmc_password_file,pdu_model,pdu,pdu_outlet,console_host,console_port,ssh_host,scratch\n"
)


def server(number: int, **other: str) -> str:
    """Return the row of a server; `other` replaces cells by column."""
    cells = dict(
        zip(
            HEADER.strip().split(","),
            f"server-{number},xeon-a,2,1,40,2,2,smt_last,ipmi,bmc-{number},lab,/etc/wqlab/ipmi,,,,"
            f"console-1,{7000 + number},server-{number},nvme-A_{number}".split(","),
            strict=True,
        )
    )
    return ",".join((cells | other).values()) + "\n"


def box(number: int) -> str:
    return (
        f"box-{number},ryzen-a,1,4,3,2,1,smt_last,pdu,,,,apc,pdu-{number},3,console-2,{8000 + number},box-{number},\n"
    )


def devices(*rows: str) -> list[NewDevice]:
    return [row.device for row in inventory.read((HEADER + "".join(rows)).encode())]


def mistakes(text: str) -> list[str]:
    with pytest.raises(inventory.InventoryError) as caught:
        inventory.read(text.encode())
    return [each.text("lab.csv") for each in caught.value.problems]


@pytest.fixture
def folders(tmp_path: Path) -> files.Folders:
    """A lab's folders, with the device types of this repository."""
    for name in ("kernels", "testplans", "intake"):
        (tmp_path / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "device-types", tmp_path / "device-types")
    return files.Folders(tmp_path, tmp_path / "exporters")


def test_200_machines_are_added_at_once_and_again_change_nothing(folders: files.Folders) -> None:
    machines = devices(*(server(number) for number in range(1, 101)), *(box(number) for number in range(1, 101)))
    assert len(files.write(files.plan(machines, folders))) == 200 + 2 + 1
    loaded = load_data(folders.data).device_types
    assert [unit.name for unit in loaded["xeon-a"].units] == [f"server-{number}" for number in range(1, 101)]
    unit = loaded["xeon-a"].units[41]
    assert unit.scratch == ["/dev/disk/by-id/nvme-A_42"]
    assert unit.power is not None
    assert unit.power.turn_on == "ipmitool -I lanplus -H bmc-42 -p 623 -C 17 -U lab -f /etc/wqlab/ipmi chassis power on"
    assert '$power status | grep -q "is off" || $power off' in unit.power.turn_off
    assert loaded["ryzen-a"].units[0].power is None
    assert loaded["ryzen-a"].topology.cpus == 24
    assert loaded["ryzen-a"].tested is False
    assert files.write(files.plan(machines, folders)) == []


def test_a_machine_joins_the_type_that_an_earlier_call_wrote(folders: files.Folders) -> None:
    files.write(files.plan(devices(server(1)), folders))
    without_topology = dict.fromkeys(HEADER.split(",")[2:8], "")
    files.write(files.plan(devices(server(2, **without_topology)), folders))
    assert [unit.name for unit in load_data(folders.data).device_types["xeon-a"].units] == ["server-1", "server-2"]


def test_what_a_machine_has_unlike_its_type_is_named(folders: files.Folders) -> None:
    files.write(files.plan(devices(server(1)), folders))
    with pytest.raises(files.DevicesRefused) as caught:
        files.plan(devices(server(2, cores_per_l3="20")), folders)
    (refusal,) = caught.value.refusals
    assert refusal.field == "topology"
    assert "choose another device type" in refusal.message


def test_other_values_are_replaced_only_when_told(folders: files.Folders) -> None:
    files.write(files.plan(devices(server(1), server(2)), folders))
    moved = devices(server(1, bmc="bmc-7", console_port="7107"))
    with pytest.raises(
        files.DevicesRefused, match="SERVER_1_CONSOLE_PORT=7001, SERVER_1_BMC=bmc-1; choose another name"
    ):
        files.plan(moved, folders)
    files.write(files.plan(moved, folders, replace=True))
    known, problems = read_addresses(folders.device_types)
    assert not problems
    assert (known["SERVER_1_BMC"], known["SERVER_1_CONSOLE_PORT"]) == ("bmc-7", "7107")
    assert known["SERVER_2_BMC"] == "bmc-2"


def test_a_file_that_a_person_wrote_is_left_alone(folders: files.Folders) -> None:
    with pytest.raises(files.DevicesRefused) as caught:
        files.plan(devices(server(1, device_type="tiny")), folders)
    assert "device-types/tiny.yaml was written or edited by a person" in str(caught.value)
    assert "  - name: server-1" in str(caught.value), "it shows what to add"
    files.write(files.plan(devices(server(1)), folders))
    path = folders.device_types / "xeon-a.yaml"
    path.write_text(path.read_text().replace("tested: false\n", "tested: false  # not yet\n"))
    with pytest.raises(files.DevicesRefused, match="edited by a person"):
        files.plan(devices(server(2)), folders)


def test_a_device_type_that_is_not_utf_8_is_named(folders: files.Folders) -> None:
    (folders.device_types / "xeon-a.yaml").write_bytes("summary: gro\u00df\n".encode("latin-1"))
    assert refusals(folders, server(1))[-1].endswith("device-types/xeon-a.yaml is not UTF-8: save it as UTF-8")


def test_one_wrong_machine_writes_nothing_of_any(folders: files.Folders) -> None:
    before = sorted(path for path in folders.data.rglob("*"))
    rows = devices(
        server(1), server(2, console_port="7001"), server(3, name="server.1"), server(4, device_type="ryzen-3900x-1x2")
    )
    with pytest.raises(files.DevicesRefused) as caught:
        files.plan(rows, folders)
    said = str(caught.value)
    assert "server-2 has the console of server-1" in said
    assert "server.1 makes the same names in addresses.env as server-1" in said
    assert sorted(path for path in folders.data.rglob("*")) == before


def refusals(folders: files.Folders, *rows: str, replace: bool = False) -> list[str]:
    with pytest.raises(files.DevicesRefused) as caught:
        files.plan(devices(*rows), folders, replace=replace)
    return [f"{each.device}: {each.field}: {each.message}" for each in caught.value.refusals]


def test_a_unit_of_another_type_is_refused_in_its_row(folders: files.Folders) -> None:
    found = refusals(folders, server(1, name="tiny-1"), server(2), replace=True)
    advice = "choose another name, or remove it from device-types/tiny.yaml first"
    assert found == [f"tiny-1: name: tiny-1 is already a unit of tiny: {advice}"]


HAND_WRITTEN = """\
name: mine
summary: described by a person
recipe: measure-hardware
topology: {sockets: 1, l3_per_socket: 1, cores_per_l3: 2, threads_per_core: 1}
units:
  - name: rack-1
    lab: local
    power: {turn_on: "ipmi -H ${RACK_1_BMC:-10.0.0.1} on", turn_off: "ipmi -H ${RACK_1_BMC:-10.0.0.1} off"}
"""


@pytest.mark.parametrize("replace", [False, True])
def test_addresses_of_a_machine_that_a_person_described_stay(folders: files.Folders, replace: bool) -> None:
    """A name that makes the same names in addresses.env would send power commands to another machine."""
    (folders.device_types / "mine.yaml").write_text(HAND_WRITTEN)
    (found,) = refusals(folders, server(1, name="rack_1"), replace=replace)
    assert (
        found == "rack_1: name: RACK_1_BMC in addresses.env is that of rack-1 (device-types/mine.yaml): rename rack_1"
    )


def test_a_name_that_differs_by_its_marks_only_is_refused_in_a_later_import(folders: files.Folders) -> None:
    files.write(files.plan(devices(server(1)), folders))
    found = refusals(folders, server(2, name="server_1"), replace=True)
    assert "in addresses.env is that of server-1 (device-types/xeon-a.yaml): rename server_1" in found[0]


@pytest.mark.parametrize(
    ("cells", "field", "said"),
    [
        ({"console_port": "7001"}, "console", "console of SERVER_1"),
        ({"ssh_host": "SERVER-1"}, "ssh", "SSH address of SERVER_1"),
        ({"bmc": "BMC-1"}, "power", "power switch of SERVER_1"),
    ],
)
def test_a_place_of_an_earlier_import_is_refused(
    folders: files.Folders, cells: dict[str, str], field: str, said: str
) -> None:
    files.write(files.plan(devices(server(1)), folders))
    (found,) = refusals(folders, server(2, **cells))
    assert (
        found == f"server-2: {field}: server-2 has the {said} in device-types/addresses.env: each machine needs its own"
    )


def test_the_loopback_of_another_labs_host_is_another_address(folders: files.Folders) -> None:
    (first,), (second,) = (
        devices(server(number, console_host="127.0.0.1", console_port="7001", device_type=f"type-{number}"))
        for number in (1, 2)
    )
    files.write(files.plan([first.model_copy(update={"lab": "one"})], folders))
    assert files.plan([second.model_copy(update={"lab": "two"})], folders)
    with pytest.raises(files.DevicesRefused, match="server-2 has the console of SERVER_1"):
        files.plan([second.model_copy(update={"lab": "one"})], folders)


def test_bmcs_behind_one_gateway_differ_by_their_ports(folders: files.Folders) -> None:
    redfish = OTHERS.replace("blade.3", "").replace("bmc-1,8443", "gateway,8443").replace("bmc-2,,", "gateway,8444,")
    assert files.plan([row.device for row in inventory.read(redfish.encode())], folders)


def test_ipmi_and_redfish_of_one_bmc_are_one_switch(folders: files.Folders) -> None:
    redfish = OTHERS.replace("blade.3", "").replace("bmc-1,8443", "bmc-2,")
    rows = inventory.read(redfish.encode())
    with pytest.raises(files.DevicesRefused, match="quiet-2 has the power switch of quiet-1"):
        files.plan([row.device for row in rows], folders)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (server(1, console_port="70010"), "lab.csv:2: console_port: '70010': input should be less than"),
        (server(1, bmc="b mc"), "lab.csv:2: bmc: 'b mc': write a host name or an IPv4 address"),
        (server(1, bmc="$(reboot)"), "lab.csv:2: bmc: '$(reboot)': write a host name or an IPv4 address"),
        (server(1, bmc_password_file="/etc/../x"), "lab.csv:2: bmc_password_file: '/etc/../x': write the absolute"),
        (server(1, bmc_user="a;b"), "lab.csv:2: bmc_user: 'a;b': use letters, digits and _.- only, at most 32"),
        (server(1, power=""), "lab.csv:2: power: is empty: write ipmi, redfish, pdu or debug_cable"),
        (server(1, bmc=""), "lab.csv:2: bmc: is empty: write a value"),
        (server(1, pdu="pdu-1"), "lab.csv:2: pdu: is set, but power is ipmi: leave it empty"),
        (server(1, scratch="../sda"), "lab.csv:2: scratch: '../sda': write names in /dev/disk/by-id"),
        (server(1, numbering="odd"), "lab.csv:2: numbering: 'odd': input should be 'contiguous' or 'smt_last'"),
        (server(1).strip() + ",more\n", "lab.csv:2: has 20 cells for 19 columns: quote cells with a comma"),
        (server(1) + server(1), "lab.csv:3: name: server-1 is also in line 2: remove one of them"),
        ('"server', "lab.csv:2: is not CSV: unexpected end of data"),
        ('"server' + "\nrow" * 50, "lab.csv:2: is not CSV: unexpected end of data"),
        (server(1, name="0042"), "lab.csv:2: name: '0042': in YAML, 0042 is a number or another value"),
        (server(1, device_type="null"), "lab.csv:2: device_type: 'null': in YAML, null is"),
        (server(1, bmc="x" * 100_000), f"lab.csv:2: bmc: '{'x' * 80}...': "),
    ],
)  # fmt: skip
def test_each_mistake_names_line_column_and_fix(row: str, said: str) -> None:
    (found,) = mistakes(HEADER + row)
    assert found.startswith(said)


def test_every_mistake_of_a_file_is_reported(folders: files.Folders) -> None:
    found = mistakes(HEADER + server(1, bmc="", console_port="x") + "\n# comment\n" + server(2, power="steam"))
    assert [line.split(": ")[0] for line in found] == ["lab.csv:2", "lab.csv:2", "lab.csv:5"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "lab.csv: is empty"),
        ("name;device_type\na;b\n", "lab.csv:1: is not separated by commas"),
        (
            HEADER.replace("bmc_user", "bmc_usr") + server(1),
            "lab.csv:1: bmc_usr: no such column; did you mean bmc_user",
        ),
        (HEADER, "lab.csv: has no machine"),
        ("# machines\n\nname\n", "lab.csv:3: console_host: the column is missing"),
        ("# machines\n", "lab.csv: is empty"),
        (HEADER.replace("scratch", "name") + server(1), "lab.csv:1: name: is there twice"),
    ],
)
def test_a_file_that_is_no_inventory_is_refused(text: str, said: str) -> None:
    assert mistakes(text)[0].startswith(said)


def test_a_spreadsheets_byte_order_mark_and_line_ends_are_read() -> None:
    data = b"\xef\xbb\xbf" + (HEADER + server(1)).replace("\n", "\r\n").encode()
    assert inventory.read(data)[0].device.name == "server-1"
    with pytest.raises(inventory.InventoryError, match="not UTF-8"):
        inventory.read((HEADER + server(1, ssh_host="höst")).encode("latin-1"))


def test_a_description_has_no_place_for_a_command_or_a_password() -> None:
    described = devices(server(1))[0].model_dump()
    for extra in ({"command": "reboot"}, {"password": "secret"}):
        with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
            NewDevice.model_validate({**described, "power": {**described["power"], **extra}})


def test_values_of_a_description_reach_commands_unchanged_in_meaning() -> None:
    """Every value that can be in a command is of characters that no shell interprets."""
    power = Ipmi(host="bmc-1.example.org", user="lab", password_file="/etc/wqlab/ipmi-1")
    device = devices(server(1))[0].model_copy(update={"power": power})
    commands = render.power_commands(device)
    assert commands is not None
    assert "$" not in commands["turn_on"]
    assert commands["turn_off"].count("$power") == 2


NETCONSOLE = "+6665@192.0.2.11/eth0,6666@192.0.2.1/"
OTHERS = f"""\
name,device_type,arch,power,bmc,bmc_port,bmc_user,bmc_password_file,bmc_certificate,bmc_system,servo_port,console_host,\
console_port,console_protocol,console_device,netconsole,ssh_host,choose_golden,sockets,l3_per_socket,cores_per_l3
quiet-1,quiet,,redfish,bmc-1,8443,lab,/etc/wqlab/redfish,/etc/wqlab/bmc.pem,blade.3,,console-1,7001,,,"{NETCONSOLE}",\
192.0.2.11,,1,4,4
quiet-2,quiet,,redfish,bmc-2,,lab,/etc/wqlab/redfish,,,,console-1,7002,,,"{NETCONSOLE}",192.0.2.12,\
grub-reboot wqlab,,,
book-1,book,arm64,debug_cable,,,,,,,9997,console-1,7003,rfc2217,ttyMSM0,,book-1,,1,1,8
"""


def test_redfish_netconsole_and_debug_cable(folders: files.Folders) -> None:
    files.write(files.plan([row.device for row in inventory.read(OTHERS.encode())], folders))
    loaded = load_data(folders.data).device_types
    first, second = loaded["quiet"].units
    assert first.power is not None and second.power is not None
    assert first.power.turn_on == (
        "wqlab-redfish --url https://bmc-1:8443 --user lab --password-file /etc/wqlab/redfish --certificate"
        " /etc/wqlab/bmc.pem --system blade.3 on"
    )
    assert second.power.turn_off == (
        "wqlab-redfish --url https://bmc-2 --user lab --password-file /etc/wqlab/redfish off"
    )
    assert first.netconsole == NETCONSOLE
    assert first.own_system is None
    assert second.own_system == OwnSystem(choose_golden="grub-reboot wqlab", timeout_s=300)
    assert (loaded["quiet"].boot.crash_kernel_mib, loaded["book"].boot.crash_kernel_mib) == (256, None)
    (book,) = loaded["book"].units
    assert book.power is not None
    assert book.power.turn_off == "dut-control --port 9997 power_state:off"
    assert (book.netconsole, loaded["book"].arch) == (None, "arm64")
    exporters = {name: (folders.exporters / f"{name}.yaml").read_text() for name in ("book-1", "quiet-1")}
    assert "NetworkPowerPort" not in exporters["book-1"]
    assert "protocol: rfc2217" in exporters["book-1"] and "protocol: raw" in exporters["quiet-1"]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (",9997,", ",,", ""),  # the usual port
        (",redfish,bmc-1,", ",ipmi,bmc-1,", "bmc_certificate: is set, but power is ipmi: leave it empty"),
        ("/etc/wqlab/bmc.pem", "/etc/../x", "bmc_certificate: '/etc/../x': write the absolute path"),
        (NETCONSOLE, "+6665@x", "netconsole: '+6665@x': write it as +6665@192.0.2.11/eth0,"),
        ("blade.3", "$(id)", "bmc_system: '$(id)': write the name of a system"),
        (",9997,", ",0,", "servo_port: '0': "),
        ("grub-reboot wqlab", "grub-reboot 'wqlab'", "choose_golden: \"grub-reboot 'wqlab'\": write a command without"),
        (",rfc2217,", ",ssh,", "console_protocol: 'ssh': "),
        (",7001,,", ",7001,rfc2217,", "wqlab-netconsole offers a raw port: leave out the console's protocol"),
    ],
)
def test_mistakes_about_other_switches_name_their_column(before: str, after: str, said: str) -> None:
    text = OTHERS.replace(before, after, 1)
    assert text != OTHERS
    if said:
        assert any(said in each for each in mistakes(text))
    else:
        inventory.read(text.encode())


def test_two_machines_at_one_debug_cable_are_refused(folders: files.Folders) -> None:
    again = OTHERS.splitlines()[3].replace("book-1", "book-2").replace("7003", "7004")
    rows = inventory.read(f"{OTHERS}{again}\n".encode())
    with pytest.raises(files.DevicesRefused, match="book-2 has the power switch of book-1"):
        files.plan([row.device for row in rows], folders)
