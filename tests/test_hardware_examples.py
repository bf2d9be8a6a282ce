"""The example device types and labgrid files of docs/hardware are valid, although they were never run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from labgrid import Target, target_factory
from labgrid.remote.config import ResourceConfig

from wqlab_contracts.keys import fragment_names
from wqlab_contracts.loading import DataFolder, load_data

ROOT = Path(__file__).parents[1]
HARDWARE = ROOT / "docs/hardware"
TYPES = sorted((HARDWARE / "device-types").glob("*.yaml"))
EXPORTERS = sorted((HARDWARE / "labgrid").glob("*.yaml"))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> DataFolder:
    """Create a data folder with every example copied into it, without addresses: all defaults hold."""
    folder = tmp_path_factory.mktemp("data")
    for name in ("device-types", "kernels", "testplans"):
        shutil.copytree(ROOT / name, folder / name)
    for path in TYPES:
        shutil.copy(path, folder / "device-types")
    return load_data(folder)


def test_each_machine_has_an_example() -> None:
    assert [path.stem for path in TYPES] == [
        "chromebook-mt8183", "chromebook-rk3399", "chromebook-sc7180", "dual-boot-server", "ryzen-3900x-box",
        "ssh-only-server", "xeon-8380-2s",
    ]  # fmt: skip
    assert not {path.stem for path in TYPES} & load_data(ROOT).device_types.keys(), (
        "no example belongs to the default lab"
    )


@pytest.mark.parametrize("name", [path.stem for path in TYPES])
def test_device_type_is_valid_and_never_ran_on_hardware(data: DataFolder, name: str) -> None:
    device_type = data.device_types[name]
    assert device_type.tested is not True
    assert not device_type.rehearsal
    assert not device_type.emulated
    cores = {
        "ryzen-3900x-box": (24, 4),
        "xeon-8380-2s": (160, 2),
        "chromebook-rk3399": (6, 2),
        "ssh-only-server": (32, 4),
        "dual-boot-server": (32, 4),
    }
    domains = 1 if name == "chromebook-sc7180" else 2
    assert (device_type.topology.cpus, device_type.topology.l3_domains) == cores.get(name, (8, domains))
    recipe = data.recipes[device_type.recipe]
    assert f"hardware-{'x86' if device_type.arch == 'x86_64' else 'arm64'}" in fragment_names(
        recipe, device_type.arch, emulated=False
    )


def exported() -> dict[str, dict[str, dict[str, object]]]:
    """Return place -> resource class -> arguments, as labgrid's exporter reads the snippets."""
    found: dict[str, dict[str, dict[str, object]]] = {}
    for path in EXPORTERS:
        groups = ResourceConfig(str(path), {"env": {}}).data
        assert not found.keys() & groups.keys()
        found |= groups
    return found


def test_labgrid_reads_the_snippets_with_all_resources(data: DataFolder) -> None:
    places = exported()
    units = {unit.name: unit for path in TYPES for unit in data.device_types[path.stem].units}
    assert places.keys() == units.keys()
    for name, resources in places.items():
        target = Target(name)
        for kind, arguments in resources.items():
            target_factory.make_resource(target, kind, kind, arguments)
        needed = {"NetworkSerialPort", "NetworkService"} | (set() if units[name].power else {"NetworkPowerPort"})
        assert resources.keys() == needed, name
