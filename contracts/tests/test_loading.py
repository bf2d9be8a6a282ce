"""Data folder loading: valid folders, and problems with file, line and key."""

from pathlib import Path
from textwrap import dedent

import pytest
from data_folder import FILES, problems, write

from wqlab_contracts.enums import MetricClass, Role
from wqlab_contracts.keys import fragment_names
from wqlab_contracts.loading import DataFolder, load_data

REPOSITORY = Path(__file__).parents[2]


def test_valid_folder_is_loaded(folder: Path) -> None:
    data = load_data(folder)
    assert isinstance(data, DataFolder)
    assert data.default_tree == data.golden_tree == "mine"
    assert set(data.device_types) == {"tiny"}
    assert data.fragment("emulated") == "CONFIG_PARAVIRT=y\n"
    assert data.plan_files("health-check") == {"check.sh": "echo fine\n", "lib.sh": "shared() { :; }\n"}
    assert data.modules["load"].keys() == {"Kbuild", "load.c", "words.h"}
    assert data.modules.keys() == {"load"}
    with pytest.raises(KeyError):
        data.fragment("nothing")


def test_file_of_a_plan_with_the_name_of_a_shared_one_is_a_problem(folder: Path) -> None:
    """It would replace the shared one, and a script that sources that would source itself, endlessly."""
    write(folder, "testplans/health-check/lib.sh", ". ./lib.sh\n")
    (problem,) = problems(folder)
    assert problem.startswith("testplans/health-check/lib.sh: would replace testplans/common/lib.sh, which each plan")


def test_plan_can_use_the_files_of_another_plan(folder: Path) -> None:
    lender = dedent(FILES["testplans/health-check/plan.yaml"]).replace("health-check", "wider")
    write(folder, "testplans/wider/plan.yaml", f"{lender}files_of: health-check\n")
    write(folder, "testplans/wider/more.sh", "more() { :; }\n")
    write(folder, "testplans/health-check/README.md", "About the health check.\n")
    files = load_data(folder).plan_files("wider")
    assert files == {"check.sh": "echo fine\n", "lib.sh": "shared() { :; }\n", "more.sh": "more() { :; }\n"}


def test_metric_takes_what_it_leaves_out_from_the_plan_whose_files_it_uses(folder: Path) -> None:
    plan = dedent(FILES["testplans/health-check/plan.yaml"]).replace("metrics: []", "metrics: [METRIC]")
    cost = "name: cost, summary: what it costs, unit: us, scale: ratio, direction: none, class: mechanism, delta: 2"
    write(folder, "testplans/health-check/plan.yaml", plan.replace("METRIC", f"{{{cost}, taken_from: traced}}"))
    own = plan.replace("name: health-check", "name: wider") + "files_of: health-check\n"
    write(folder, "testplans/wider/plan.yaml", own.replace("METRIC", "{name: cost, delta: 3}"))
    data = load_data(folder)
    lent, (metric,) = data.plans["health-check"].metrics[0], data.plans["wider"].metrics
    assert metric == lent.model_copy(update={"delta": 3.0})
    write(folder, "testplans/wider/plan.yaml", own.replace("METRIC", "{name: costs}"))
    assert "testplans/wider/plan.yaml:11: metrics[0].unit: required field is missing" in problems(folder)


def test_figures_of_a_publication_share_its_other_fields(folder: Path) -> None:
    plan = dedent(FILES["testplans/health-check/plan.yaml"])
    metric = "{name: cost, summary: what it costs, unit: us, scale: ratio, class: mechanism, role: secondary}"
    text = plan.replace("metrics: []", f"metrics: [{metric}]") + dedent("""\
        references:
          - scenario: alive
            setting: strict=0
            kernel: v7.0
            machine: two CPUs
            source: a mail
            figures:
              - {metric: cost, mean: 2}
              - {metric: cost, mean: 3, kernel: v7.1}
        """)
    write(folder, "testplans/health-check/plan.yaml", text)
    loaded = load_data(folder).plans["health-check"]
    (cost,) = loaded.metrics
    assert (cost.role_hardware, cost.role_emulated) == (Role.SECONDARY, Role.SECONDARY)
    assert [(each.mean, each.kernel, each.source) for each in loaded.references] == [
        (2, "v7.0", "a mail"),
        (3, "v7.1", "a mail"),
    ]
    write(folder, "testplans/health-check/plan.yaml", text.replace("mean: 3", "mean: x"))
    (problem,) = problems(folder)
    line = text.splitlines().index("      - {metric: cost, mean: 3, kernel: v7.1}") + 1
    assert problem.startswith(f"testplans/health-check/plan.yaml:{line}: references[1].mean: ")


def test_common_device_type_gives_the_defaults(folder: Path) -> None:
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
            "device-types/tiny.yaml:10: units[0].scratch[0]: '/dev/disk/by-id/a' is listed as a scratch device twice:"
            " of tiny-1 and of tiny-2",
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
            "device-types/tiny.yaml:4: arch: key is written twice; first on line 3",
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
            "default: mine",
            "default: mine\ngolden: mien",
            "kernels/trees.yaml:2: golden: no tree 'mien'; did you mean mine?",
        ),
        (
            "kernels/trees.yaml",
            "    url: https://git.example.org/linux.git",
            "    branch: master",
            "kernels/trees.yaml:3: trees[0]: a tree needs exactly one of url and debian_source",
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
            "kernels/modules/load/Kbuild: the file must exist and contain obj-m := load.o",
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
            "script: check.sh",
            "script: check.sh\nfragments: [bas]",
            "testplans/health-check/plan.yaml:4: fragments[0]: no kernels/fragments/bas.config; did you mean base?",
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
            "device-types/tiny.yaml:1: health_check: plan health-check needs checks_health: true to be a health check",
        ),
        (
            "testplans/health-check/plan.yaml",
            "parser: health",
            "parser: [health",
            "testplans/health-check/plan.yaml:5: not valid YAML: did not find expected ',' or ']'",
        ),
    ],
)
def test_problem_is_reported_with_file_line_and_key(folder: Path, file: str, old: str, new: str, expected: str) -> None:
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new, 1))
    assert expected in problems(folder)


def test_noise_plan_that_needs_other_kernels_is_reported(folder: Path) -> None:
    plan, device_type = folder / "testplans/health-check/plan.yaml", folder / "device-types/tiny.yaml"
    plan.write_text(plan.read_text().replace("script: check.sh", "script: check.sh\nfragments: [base]"))
    device_type.write_text(device_type.read_text() + "noise_plan: health-check\n")
    [problem] = problems(folder)
    assert "noise_plan: plan health-check needs other kernels than the golden system's" in problem


def test_all_problems_are_reported(folder: Path) -> None:
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


def test_missing_folder_is_reported(tmp_path: Path) -> None:
    assert problems(tmp_path / "nowhere") == [f"{tmp_path / 'nowhere'}: no such data folder"]


def test_data_folder_of_the_repository_is_valid() -> None:
    data = load_data(REPOSITORY)
    assert data.trees[data.default_tree].debian_source == "linux-source-7.3"
    assert data.trees[data.golden_tree].debian_source == "linux-source-6.12"
    assert {"linux-6.1", "linux-6.12"} <= data.trees.keys()
    assert data.recipes["measure"].figures
    assert not data.recipes["debug"].figures
    names = fragment_names(data.recipes["measure"], "x86_64", True)
    assert names[-1] == "emulated"
    assert "CONFIG_WQ_WATCHDOG=y" in data.fragment("observe")


def test_each_share_that_is_judged_on_emulated_devices_has_a_threshold_of_the_turns() -> None:
    shares = {
        f"{plan.name} {metric.name}": metric.emulator_delta
        for plan in load_data(REPOSITORY).plans.values()
        for metric in plan.metrics
        if metric.unit == "%" and metric.metric_class is MetricClass.MECHANISM
        if metric.role_emulated is not Role.EXPLANATORY
    }
    assert len(shares) > 20 and [name for name, delta in shares.items() if not delta] == []
