"""The data-folder loader: what it accepts, and that each mistake is named with file, line and key."""

from pathlib import Path
from textwrap import dedent

import pytest

from wqlab_contracts.keys import fragment_names
from wqlab_contracts.loading import DataError, DataFolder, load_data

REPOSITORY = Path(__file__).parents[2]

FILES = {
    "device-types/common.yaml": """\
        boot:
          console_speed: 57600
          golden_timeout_s: 60
        """,
    "device-types/tiny.yaml": """\
        name: tiny
        summary: two CPUs
        arch: x86_64
        topology: {sockets: 1, l3_per_socket: 1, cores_per_l3: 2, threads_per_core: 1}
        boot:
          golden_timeout_s: 30
        emulation:
          memory_mib: 1024
        units:
          - name: tiny-1
          - name: tiny-2
        """,
    "kernels/trees.yaml": """\
        default: mine
        trees:
          - name: mine
            summary: a tree
            url: https://git.example.org/linux.git
        """,
    "kernels/recipes/measure.yaml": """\
        name: measure
        summary: a recipe
        fragments: [base]
        emulated_fragments: [emulated]
        """,
    "kernels/fragments/base.config": """\
        # prose
        CONFIG_SMP=y
        CONFIG_NR_CPUS=512
        # CONFIG_MODULES is not set
        """,
    "kernels/fragments/emulated.config": "CONFIG_PARAVIRT=y\n",
    "kernels/modules/load/Kbuild": "obj-m := load.o\n",
    "kernels/modules/load/load.c": "/* nothing */\n",
    "testplans/common/lib.sh": "shared() { :; }\n",
    "testplans/health-check/plan.yaml": """\
        name: health-check
        summary: does it live
        script: check.sh
        parser: health
        checks_health: true
        scenarios: [{name: alive, summary: up}]
        axes: [{name: strict, values: ['0', '1']}]
        reference_setting: strict=0
        hardware: {settings: [strict=0]}
        emulated: {settings: [strict=0, strict=1]}
        metrics: []
        """,
    "testplans/health-check/check.sh": "echo fine\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        write(tmp_path, name, text)
    return tmp_path


def write(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text))


def problems(folder: Path) -> list[str]:
    with pytest.raises(DataError) as caught:
        load_data(folder)
    return str(caught.value).splitlines()


def test_a_good_folder_loads(folder: Path) -> None:
    data = load_data(folder)
    assert isinstance(data, DataFolder)
    assert data.default_tree == "mine"
    assert set(data.device_types) == {"tiny"}
    assert data.fragment("emulated") == "CONFIG_PARAVIRT=y\n"
    assert data.plan_files("health-check") == {"check.sh": "echo fine\n", "lib.sh": "shared() { :; }\n"}
    with pytest.raises(KeyError):
        data.fragment("nothing")


def test_a_plan_may_run_another_ones_script(folder: Path) -> None:
    lender = dedent(FILES["testplans/health-check/plan.yaml"]).replace("health-check", "wider")
    write(folder, "testplans/wider/plan.yaml", f"{lender}files_of: health-check\n")
    write(folder, "testplans/wider/more.sh", "more() { :; }\n")
    write(folder, "testplans/health-check/README.md", "About the health check.\n")
    files = load_data(folder).plan_files("wider")
    assert files == {"check.sh": "echo fine\n", "lib.sh": "shared() { :; }\n", "more.sh": "more() { :; }\n"}


def test_a_knob_with_a_default_may_be_left_out(folder: Path) -> None:
    path = folder / "testplans/health-check/plan.yaml"
    local = "{name: local, values: ['0', '1'], default: '0'}"
    path.write_text(path.read_text().replace("axes: [", f"axes: [{local}, "))
    plan = load_data(folder).plans["health-check"]
    plan.check_setting("local=1,strict=0")
    assert plan.knobs("strict=1") == {"local": "0", "strict": "1"}
    assert plan.knobs("local=1,strict=1") == {"local": "1", "strict": "1"}
    with pytest.raises(ValueError, match="does not say strict"):
        plan.check_setting("local=1")
    with pytest.raises(ValueError, match="not canonical: write 'strict=0'"):
        plan.check_setting("local=0,strict=0")


def test_a_profile_may_measure_some_of_the_scenarios(folder: Path) -> None:
    path = folder / "testplans/health-check/plan.yaml"
    text = path.read_text().replace("{name: alive, summary: up}", "{name: alive, summary: up}, {name: b, summary: s}")
    path.write_text(text.replace("emulated: {", "emulated: {scenarios: [b], "))
    plan = load_data(folder).plans["health-check"]
    assert [each.name for each in plan.measured(None, emulated=False).scenarios] == ["alive", "b"]
    assert [each.name for each in plan.measured(None, emulated=True).scenarios] == ["b"]
    chosen = plan.measured(["alive"], emulated=True)
    assert [each.name for each in chosen.scenarios] == ["alive"]
    # What is measured is sent to workers and kept in rows: it is read back and still whole.
    assert type(plan).model_validate_json(chosen.model_dump_json(by_alias=True)) == chosen
    path.write_text(text.replace("emulated: {", "emulated: {scenarios: [c], "))
    (problem,) = problems(folder)
    assert problem.endswith("profile for unknown scenario 'c' (scenarios: alive, b)")


@pytest.mark.parametrize(
    ("old", "new", "power_off_s"),
    [
        ("", "", 0),
        ("  golden_timeout_s: 30", "  power_off_s: 3", 3),
        ("emulation:\n  memory_mib: 1024\n", "", 2),
    ],
)
def test_an_emulated_device_is_cold_at_once_unless_its_type_says_so(
    folder: Path, old: str, new: str, power_off_s: float
) -> None:
    path = folder / "device-types/tiny.yaml"
    path.write_text(path.read_text().replace(old, new))
    assert load_data(folder).device_types["tiny"].boot.power_off_s == power_off_s


@pytest.mark.parametrize("smt", ["", "  smt: false\n"])
def test_without_smt_cpus_are_numbered_with_gaps(folder: Path, smt: str) -> None:
    path = folder / "device-types/tiny.yaml"
    path.write_text(path.read_text().replace("emulation:", f"conditions:\n  irq_affinity: 0,2\n{smt}emulation:"))
    if smt:
        assert load_data(folder).device_types["tiny"].conditions.irq_affinity == "0,2"
    else:
        assert "no CPU 2" in problems(folder)[0]


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("ipmitool -P 'a b", "No closing quotation"),
        ("'   '", "it names no program"),
        ("""'"" on'""", "it names no program"),
    ],
)
def test_a_power_command_names_a_program(folder: Path, command: str, says: str) -> None:
    path = folder / "device-types/tiny.yaml"
    power = f"tiny-2\n    power:\n      turn_on: ipmitool -P 'a b' on\n      turn_off: {command}"
    path.write_text(path.read_text().replace("tiny-2", power))
    assert problems(folder) == [f"device-types/tiny.yaml:14: units[1].power.turn_off: not a command: {says}"]


def test_common_device_type_fills_in_under_each_type(folder: Path) -> None:
    boot = load_data(folder).device_types["tiny"].boot
    assert (boot.console_speed, boot.golden_timeout_s, boot.console_device) == (57600, 30, "ttyS0")


@pytest.mark.parametrize(
    ("file", "old", "new", "expected"),
    [
        (
            "device-types/tiny.yaml",
            "  memory_mib: 1024",
            "  memory_mb: 1024",
            "device-types/tiny.yaml:8: emulation.memory_mb: unknown field; did you mean memory_mib?",
        ),
        (
            "device-types/tiny.yaml",
            "- name: tiny-2",
            "- nmae: tiny-2",
            "device-types/tiny.yaml:11: units[1].nmae: unknown field; did you mean name?",
        ),
        (
            "device-types/tiny.yaml",
            "summary: two CPUs\n",
            "",
            "device-types/tiny.yaml:1: summary: required field is missing",
        ),
        (
            "device-types/tiny.yaml",
            "memory_mib: 1024",
            "memory_mib: lots",
            "device-types/tiny.yaml:8: emulation.memory_mib: Input should be a valid integer, unable to parse string"
            " as an integer (not 'lots')",
        ),
        (
            "device-types/tiny.yaml",
            "name: tiny-2",
            "name: tiny-2\n    scratch: [/dev/disk/by-id/nvme-Good_1, /dev/sda]",
            "device-types/tiny.yaml:12: units[1].scratch[1]: String should match pattern"
            " '^/dev/disk/by-id/[^/\\s]+$' (not '/dev/sda')",
        ),
        (
            "device-types/tiny.yaml",
            "tiny-2",
            "tiny-1",
            "device-types/tiny.yaml:10: units[0].name: two units share the name 'tiny-1'",
        ),
        (
            "device-types/tiny.yaml",
            "emulation:",
            "conditions:\n  irq_affinity: 1-0\nemulation:",
            "device-types/tiny.yaml:8: conditions.irq_affinity: the range 1-0 runs backwards: write 0-1",
        ),
        (
            "device-types/tiny.yaml",
            "emulation:",
            "conditions:\n  irq_affinity: 0-31\nemulation:",
            "device-types/tiny.yaml:8: conditions.irq_affinity: there is no CPU 31: the topology has 2, 0-1",
        ),
        (
            "device-types/tiny.yaml",
            "  golden_timeout_s: 30",
            "  console_speed: -5",
            "device-types/tiny.yaml:6: boot.console_speed: Input should be greater than 0 (not -5)",
        ),
        (
            "device-types/tiny.yaml",
            "  golden_timeout_s: 30",
            "  console_device: ''",
            "device-types/tiny.yaml:6: boot.console_device: String should match pattern '^\\S+$' (not '')",
        ),
        (
            "device-types/tiny.yaml",
            "  golden_timeout_s: 30",
            "  console_device: ttyS0 quiet",
            "device-types/tiny.yaml:6: boot.console_device: String should match pattern '^\\S+$' (not 'ttyS0 quiet')",
        ),
        (
            "device-types/tiny.yaml",
            "  golden_timeout_s: 30",
            "  rootfs: ''",
            "device-types/tiny.yaml:6: boot.rootfs: String should match pattern '^/.' (not '')",
        ),
        (
            "device-types/tiny.yaml",
            "- name: tiny-1\n  - name: tiny-2",
            "- {name: tiny-1, scratch: [/dev/disk/by-id/a]}\n  - {name: tiny-2, scratch: [/dev/disk/by-id/a]}",
            "device-types/tiny.yaml:10: units[0].scratch[0]: '/dev/disk/by-id/a' is a scratch device twice: of tiny-1"
            " and of tiny-2",
        ),
        (
            "kernels/trees.yaml",
            "    summary: a tree",
            "    summary: a tree\n    branch: ''",
            "kernels/trees.yaml:5: trees[0].branch: String should match pattern '^\\S+$' (not '')",
        ),
        (
            "device-types/tiny.yaml",
            "arch: x86_64",
            "arch: x86_64\nrecipe: mesure",
            "device-types/tiny.yaml:4: recipe: no kernels/recipes/mesure.yaml; did you mean measure?",
        ),
        (
            "device-types/tiny.yaml",
            "arch: x86_64",
            "arch: x86_64\nhealth_check: dm-crypt",
            "device-types/tiny.yaml:4: health_check: no testplans/dm-crypt/plan.yaml; there are: health-check",
        ),
        (
            "device-types/tiny.yaml",
            "arch: x86_64",
            "arch: x86_64\narch: arm64",
            "device-types/tiny.yaml:4: arch: written twice; first on line 3",
        ),
        (
            "device-types/common.yaml",
            "console_speed: 57600",
            "console_speed: fast",
            "device-types/common.yaml:2: boot.console_speed: Input should be a valid integer, unable to parse string"
            " as an integer (not 'fast')",
        ),
        (
            "kernels/trees.yaml",
            "default: mine",
            "default: mien",
            "kernels/trees.yaml:1: default: no tree 'mien'; did you mean mine?",
        ),
        (
            "kernels/trees.yaml",
            "    url: https://git.example.org/linux.git",
            "    branch: master",
            "kernels/trees.yaml:3: trees[0]: a tree has either url or debian_source",
        ),
        (
            "kernels/trees.yaml",
            "    summary: a tree",
            "    summary: a tree\n    branch: 6.10",
            "kernels/trees.yaml:5: trees[0].branch: must be text: write it in quotes ('6.10')",
        ),
        (
            "kernels/trees.yaml",
            "    summary: a tree",
            "    summary: a tree\n    branch:",
            "kernels/trees.yaml:5: trees[0].branch: Input should be a valid string (not None)",
        ),
        (
            "kernels/recipes/measure.yaml",
            "[base]",
            "[base, observe]",
            "kernels/recipes/measure.yaml:3: fragments[1]: no kernels/fragments/observe.config; there are: base,"
            " emulated",
        ),
        (
            "kernels/recipes/measure.yaml",
            "[emulated]",
            "[emulated]\nmodules: [laod]",
            "kernels/recipes/measure.yaml:5: modules[0]: no folder kernels/modules/laod; did you mean load?",
        ),
        (
            "kernels/recipes/measure.yaml",
            "[emulated]",
            "[emulated]\nmodules: [load, load]",
            "kernels/recipes/measure.yaml:1: a module is listed twice",
        ),
        (
            "kernels/modules/load/Kbuild",
            "obj-m := load.o",
            "",
            "kernels/modules/load/Kbuild: must be there and say obj-m := load.o",
        ),
        (
            "kernels/recipes/measure.yaml",
            "name: measure",
            "name: other",
            "kernels/recipes/measure.yaml:1: name: is 'other', but the kernels/recipes file is called 'measure';"
            " make them equal",
        ),
        (
            "kernels/fragments/base.config",
            "CONFIG_NR_CPUS=512",
            "CONFIG_SMP=n",
            "kernels/fragments/base.config:3: CONFIG_SMP: set twice; first on line 2",
        ),
        (
            "kernels/fragments/base.config",
            "CONFIG_SMP=y",
            "CONFIG_SMP = y",
            "kernels/fragments/base.config:2: not CONFIG_X=value or '# CONFIG_X is not set': 'CONFIG_SMP = y'",
        ),
        (
            "testplans/health-check/plan.yaml",
            "script: check.sh",
            "script: chek.sh",
            "testplans/health-check/plan.yaml:3: script: no testplans/health-check/chek.sh; did you mean check.sh?",
        ),
        (
            "testplans/health-check/plan.yaml",
            "['0', '1']",
            "[0, '1']",
            "testplans/health-check/plan.yaml:7: axes[0].values[0]: must be text: write it in quotes ('0')",
        ),
        (
            "testplans/health-check/plan.yaml",
            "reference_setting: strict=0",
            "reference_setting: strict=2",
            "testplans/health-check/plan.yaml:8: reference_setting: setting 'strict=2': strict takes 0, 1, not '2'",
        ),
        (
            "testplans/health-check/plan.yaml",
            "reference_setting:",
            "references: [{scenario: alive, setting: strict=0, relative_to: strict=2, metric: m, mean: 1, kernel: k, "
            "machine: m, source: s}]\nreference_setting:",
            "testplans/health-check/plan.yaml:8: references[0].relative_to: setting 'strict=2': strict takes 0, 1, "
            "not '2'",
        ),
        (
            "testplans/health-check/plan.yaml",
            "reference_setting:",
            "tradeoff: {locality: near, work_conservation: busy}\nreference_setting:",
            "testplans/health-check/plan.yaml:1: unknown metric near",
        ),
        (
            "testplans/health-check/plan.yaml",
            "reference_setting:",
            "curve: {over: issuers, metrics: [near]}\nreference_setting:",
            "testplans/health-check/plan.yaml:1: unknown metric issuers",
        ),
        (
            "testplans/health-check/plan.yaml",
            "['0', '1']",
            "['0', '1'], default: '2'",
            "testplans/health-check/plan.yaml:7: axes[0].default: default '2' is not one of 0, 1",
        ),
        (
            "testplans/health-check/plan.yaml",
            "['0', '1']",
            "['0', '1'], default: '0'",
            "testplans/health-check/plan.yaml:8: reference_setting: setting 'strict=0' is not canonical: write ''",
        ),
        (
            "testplans/health-check/plan.yaml",
            "script: check.sh",
            "script: check.sh\nfiles_of: healt-check",
            "testplans/health-check/plan.yaml:4: files_of: no other plan 'healt-check'; there are: none",
        ),
        (
            "testplans/health-check/plan.yaml",
            "checks_health: true",
            "checks_health: false",
            "device-types/tiny.yaml:1: health_check: plan health-check does not say checks_health: true",
        ),
        (
            "testplans/health-check/plan.yaml",
            "parser: health",
            "parser: [health",
            "testplans/health-check/plan.yaml:5: not valid YAML: did not find expected ',' or ']'",
        ),
    ],
)
def test_each_mistake_names_file_line_and_key(folder: Path, file: str, old: str, new: str, expected: str) -> None:
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new, 1))
    assert expected in problems(folder)


@pytest.mark.parametrize(
    ("written", "value", "kind"),
    [
        ("2024-13-45", "2024-13-45", "!!timestamp"),
        ("!!int abc", "abc", "!!int"),
        ("!!bool maybe", "maybe", "!!bool"),
        ("!!timestamp soon", "soon", "!!timestamp"),
        ("!secret", "", "!secret"),
        ("!include other.yaml", "other.yaml", "!include"),
    ],
)
def test_a_value_that_yaml_cannot_read_is_a_mistake_like_any_other(
    folder: Path, written: str, value: str, kind: str
) -> None:
    path = folder / "device-types/tiny.yaml"
    path.write_text(path.read_text().replace("two CPUs", written))
    assert problems(folder) == [
        f"device-types/tiny.yaml:2: summary: {value!r} cannot be read as {kind}; if it is text, write it in quotes"
    ]


def test_all_problems_are_listed_not_only_the_first(folder: Path) -> None:
    write(folder, "kernels/recipes/broken.yaml", "name: broken\nfragmants: [base]\n")
    write(
        folder,
        "device-types/other.yaml",
        dedent(FILES["device-types/tiny.yaml"]).replace("name: tiny\n", "name: other\n"),
    )
    found = problems(folder)
    assert "kernels/recipes/broken.yaml:2: fragmants: unknown field; did you mean fragments?" in found
    assert "kernels/recipes/broken.yaml:1: summary: required field is missing" in found
    assert "device-types/tiny.yaml:10: units[0].name: tiny-1 is already a unit of other" in found
    assert "device-types/tiny.yaml:11: units[1].name: tiny-2 is already a unit of other" in found
    assert found == sorted(found)


def test_words_that_yaml_1_1_takes_for_booleans_stay_words(folder: Path) -> None:
    path = folder / "testplans/health-check/plan.yaml"
    text = (
        path.read_text()
        .replace("['0', '1']", "[on, off]")
        .replace("strict=0", "strict=on")
        .replace("strict=1", "strict=off")
    )
    path.write_text(text)
    assert load_data(folder).plans["health-check"].axes[0].values == ["on", "off"]


def test_an_alias_is_refused(folder: Path) -> None:
    write(
        folder,
        "kernels/recipes/measure.yaml",
        "name: measure\nsummary: x\nfragments: &f [base]\nemulated_fragments: *f\n",
    )
    assert problems(folder) == [
        "kernels/recipes/measure.yaml:3: emulated_fragments: an alias (*name) repeats a value; write it out"
    ]


def test_a_missing_folder_is_one_clear_problem(tmp_path: Path) -> None:
    assert problems(tmp_path / "nowhere") == [f"{tmp_path / 'nowhere'}: no such data folder"]


def test_the_shipped_folder_is_valid() -> None:
    data = load_data(REPOSITORY)
    assert data.trees[data.default_tree].debian_source == "linux-source-6.12"
    assert data.recipes["measure"].figures
    assert not data.recipes["debug"].figures
    names = fragment_names(data.recipes["measure"], "x86_64", True)
    assert names[-1] == "emulated"
    assert "CONFIG_WQ_WATCHDOG=y" in data.fragment("observe")
