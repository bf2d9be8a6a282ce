"""Load the device types of the data folder."""

from __future__ import annotations

from pathlib import Path

from wqlab_contracts.addresses_file import read_addresses, read_device_type
from wqlab_contracts.hardware_conditions import with_hardware_conditions
from wqlab_contracts.loading import DataError
from wqlab_contracts.specs import DeviceType
from wqlab_contracts.yamlfile import Document


def load_device_types(data_dir: Path) -> dict[str, DeviceType]:
    """Load `device-types/` alone, because devices do not depend on plans and recipes. Raises DataError."""
    folder = data_dir / "device-types"
    common = folder / "common.yaml"
    defaults = Document.read(common, f"{folder.name}/{common.name}") if common.exists() else None
    addresses, bad_addresses = read_addresses(folder)
    found, problems = {}, [*(defaults.problems if defaults else []), *bad_addresses]
    for path in sorted(folder.glob("*.yaml")):
        if path == common:
            continue
        document = read_device_type(path, f"{folder.name}/{path.name}", addresses)
        if defaults is not None:
            document = document.over(defaults)
        document = with_hardware_conditions(document)
        device_type = document.validate_as(DeviceType)
        problems.extend(document.problems)
        if device_type is not None:
            found[path.stem] = device_type
    if problems:
        raise DataError(problems)
    return found
