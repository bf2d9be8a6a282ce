"""The alert rules in deploy/monitoring/ and the graphs of docs/runbook.md fit the metrics of the application."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
import yaml

from ..support.lab import LabUnderTest

FOLDER = Path(__file__).parents[3] / "deploy/monitoring"
RULES, TESTS = FOLDER / "wqlab.rules.yml", FOLDER / "wqlab.rules.test.yml"
RUNBOOK = FOLDER.parents[1] / "docs/runbook.md"


def alerts() -> dict[str, str]:
    """Return alert -> expression."""
    [group] = yaml.safe_load(RULES.read_text())["groups"]
    return {rule["alert"]: rule["expr"] for rule in group["rules"]}


def graphs() -> list[str]:
    """Return the Prometheus expressions in the runbook's table of graphs."""
    table = RUNBOOK.read_text().partition("\n| graph | expression |\n")[2].partition("\n\n")[0]
    return re.findall(r"`(.+)`", table)


def promtool(*arguments: object) -> str:
    done = subprocess.run(["promtool", *map(str, arguments)], check=False, capture_output=True, text=True, cwd=FOLDER)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_rules_pass_their_tests() -> None:
    promtool("check", "rules", RULES)
    promtool("test", "rules", TESTS)
    promtool("check", "config", "--syntax-only", FOLDER / "prometheus.yml")


def test_every_alert_is_tested_and_documented() -> None:
    fires, quiet = Counter[str](), Counter[str]()
    for test in yaml.safe_load(TESTS.read_text())["tests"]:
        for case in test["alert_rule_test"]:
            (fires if case["exp_alerts"] else quiet)[case["alertname"]] += 1
    documented = re.findall(r"^\| `(Wqlab\w+)` \|", RUNBOOK.read_text(), flags=re.MULTILINE)
    assert set(fires) == set(quiet) == set(documented) == set(alerts())


def test_expressions_of_graphs_are_valid(tmp_path: Path) -> None:
    rules = [{"record": f"graph:{number}", "expr": text} for number, text in enumerate(graphs())]
    assert rules
    (file := tmp_path / "rules.yml").write_text(yaml.safe_dump({"groups": [{"name": "graphs", "rules": rules}]}))
    promtool("check", "rules", "--lint=none", file)


@pytest.mark.integration
def test_every_metric_of_rules_and_graphs_exists(lab: LabUnderTest) -> None:
    text = lab.client.get("/metrics", headers={"Authorization": f"Bearer {lab.token}"}).text
    kinds = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, flags=re.MULTILINE))
    suffixes = {"histogram": ("_bucket", "_count", "_sum")}
    exported = {name + suffix for name, kind in kinds.items() for suffix in suffixes.get(kind, ("",))}
    rules = {name for expression in alerts().values() for name in re.findall(r"\bwqlab_\w+", expression)}
    plotted = {name for expression in graphs() for name in re.findall(r"\bwqlab_\w+", expression)}
    assert rules | plotted <= exported
    assert {"wqlab_queue_age_seconds", "wqlab_lease_age_seconds", "wqlab_failures_total", "wqlab_boot_seconds",
            "wqlab_volume_free_bytes", "wqlab_tick_age_seconds"} <= rules  # fmt: skip
