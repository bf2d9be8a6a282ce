"""The description of a new machine has no place for a command or a password."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from wqlab_contracts.new_devices.description import NewDevice
from wqlab_contracts.new_devices.power_commands import power_commands

POWER = {"kind": "ipmi", "host": "bmc-1.example.org", "user": "lab", "password_file": "/etc/wqlab/ipmi-1"}
DESCRIBED = {
    "name": "server-1",
    "device_type": "xeon-a",
    "console": {"host": "console-1", "port": 7001},
    "ssh": {"host": "server-1"},
}


@pytest.mark.parametrize("extra", [{"command": "reboot"}, {"password": "secret"}])
def test_a_description_has_no_place_for_a_command_or_a_password(extra: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        NewDevice.model_validate({**DESCRIBED, "power": POWER | extra})


def test_values_of_a_description_reach_commands_unchanged_in_meaning() -> None:
    """Every value that can be in a command is of characters that no shell interprets."""
    commands = power_commands(NewDevice.model_validate({**DESCRIBED, "power": POWER}))
    assert commands is not None
    assert "$" not in commands["turn_on"]
    assert commands["turn_off"].count("$power") == 2
