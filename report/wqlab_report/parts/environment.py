"""Environment of a run's boots for the report, and how it differs between the arms. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from wqlab_comparison.words import count
from wqlab_contracts.api.report import Environment, EnvironmentDifference
from wqlab_contracts.enums import PAIR, Arm
from wqlab_contracts.messages import MeasuredTopology
from wqlab_contracts.messages.base import cut

from .environment_facts import LAB_ARGUMENT_PREFIX, TUNABLE_PREFIXES, is_compared

ABSENT = "not reported"
VALUES_LIMIT = 4
"""Different values of one arm that are listed; a device can report another one in each boot."""
VALUE_LIMIT = 300
"""Characters shown of each of several values."""


class Boot(Protocol):
    """What a boot reported, as recorded by a lab or a bundle."""

    @property
    def arm(self) -> Arm: ...
    @property
    def valid(self) -> bool | None: ...
    @property
    def device_name(self) -> str: ...
    @property
    def topology(self) -> MeasuredTopology | None: ...
    @property
    def cmdline(self) -> str | None: ...
    @property
    def release(self) -> str | None: ...
    @property
    def build_id_gnu(self) -> str | None: ...
    @property
    def environment(self) -> dict[str, str]: ...
    @property
    def commands(self) -> dict[str, str]: ...


def environment_of(boots: Sequence[Boot], config_lines: Sequence[str] = ()) -> Environment | None:
    """Return the environment of the valid boots; while there are none, of all boots that reported one.

    `config_lines` are the configuration options that differ between the arms, as `CONFIG_X y -> n`.
    """
    verified = [boot for boot in boots if boot.topology is not None]
    shown = [boot for boot in verified if boot.valid] or verified
    if not shown:
        return None
    first = {arm: boot for arm in PAIR if (boot := next((boot for boot in shown if boot.arm is arm), None))}
    facts: dict[str, str] = {}
    commands: dict[str, str] = {}
    for boot in shown:
        facts = boot.environment | facts
        commands = boot.commands | commands
    return Environment(
        device=", ".join(sorted({boot.device_name for boot in shown})),
        topology=shown[0].topology,
        cmdline={arm: boot.cmdline or "" for arm, boot in first.items()},
        release={arm: boot.release or "" for arm, boot in first.items()},
        build_id_gnu={arm: boot.build_id_gnu or "" for arm, boot in first.items()},
        facts={name: value for name, value in facts.items() if not name.startswith(TUNABLE_PREFIXES)},
        commands=commands,
        differences=_differences(shown, config_lines),
    )


def _differences(boots: Sequence[Boot], config_lines: Sequence[str]) -> list[EnvironmentDifference]:
    arms = {arm: [boot for boot in boots if boot.arm is arm] for arm in PAIR}
    if not all(arms.values()):
        return []
    found = _argument_differences(arms)
    for name in sorted({name for boot in boots for name in boot.environment if is_compared(name)}):
        values = {arm: Counter(boot.environment.get(name, ABSENT) for boot in of_arm) for arm, of_arm in arms.items()}
        # A fact that varies within both arms is a measurement, and no property of an arm.
        if set(values[Arm.BASELINE]) != set(values[Arm.CANDIDATE]) and any(len(each) == 1 for each in values.values()):
            found.append(_difference(name, values))
    for line in config_lines:
        name, _, values_text = line.partition(" ")
        before, _, after = values_text.partition(" -> ")
        found.append(EnvironmentDifference(name=name, baseline=before, candidate=after))
    return found


def _argument_differences(arms: Mapping[Arm, Sequence[Boot]]) -> list[EnvironmentDifference]:
    """Return the kernel arguments that only one arm has, if any, as one difference."""
    arguments = {arm: _arguments(boots[0]) for arm, boots in arms.items()}
    only = {
        Arm.BASELINE: list((arguments[Arm.BASELINE] - arguments[Arm.CANDIDATE]).elements()),
        Arm.CANDIDATE: list((arguments[Arm.CANDIDATE] - arguments[Arm.BASELINE]).elements()),
    }
    if not any(only.values()):
        return []
    texts = {arm: " ".join(words) or "none of these" for arm, words in only.items()}
    return [
        EnvironmentDifference(name="kernel arguments", baseline=texts[Arm.BASELINE], candidate=texts[Arm.CANDIDATE])
    ]


def _arguments(boot: Boot) -> Counter[str]:
    return Counter(word for word in (boot.cmdline or "").split() if not word.startswith(LAB_ARGUMENT_PREFIX))


def _difference(name: str, values: Mapping[Arm, Counter[str]]) -> EnvironmentDifference:
    return EnvironmentDifference(
        name=name,
        baseline=_listed(values[Arm.BASELINE].items()),
        candidate=_listed(values[Arm.CANDIDATE].items()),
    )


def _listed(values: Iterable[tuple[str, int]]) -> str:
    """Return the value of all boots, or each with its number of boots: `tsc in 2 boots, hpet in 1 boot`."""
    ordered = sorted(values, key=lambda each: -each[1])
    if len(ordered) == 1:
        return ordered[0][0]
    listed = [f"{cut(value, VALUE_LIMIT)} in {count(boots, 'boot')}" for value, boots in ordered[:VALUES_LIMIT]]
    left_out = ordered[VALUES_LIMIT:]
    more = [f"other values in {count(sum(boots for _, boots in left_out), 'boot')}"] if left_out else []
    return ", ".join([*listed, *more])
