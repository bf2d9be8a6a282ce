"""The reports as whole documents, and what no report may do."""

import html
import json
import re
import shlex
import subprocess
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as xml

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_examples import EXAMPLES, REPRODUCER, SSH_KEY, XEON, XFS, improvement, panic, samples, study, target, xeon

from wqlab_contracts.api.report import Report
from wqlab_contracts.enums import Arm, ErrorKind, Evidence, Role
from wqlab_contracts.messages import Failure
from wqlab_server.reports.render.facts import topology
from wqlab_server.reports.render.html import render_html
from wqlab_server.reports.render.json import render_json
from wqlab_server.reports.render.junit import render_junit
from wqlab_server.reports.render.markdown import render_markdown
from wqlab_server.reports.render.mmtests import render_mmtests
from wqlab_server.reports.render.shell import shell_lines
from wqlab_server.reports.render.text import render_text

GOLDEN = Path(__file__).parent / "golden"
RENDERERS = {
    "text": render_text,
    "markdown": render_markdown,
    "html": render_html,
    "junit": render_junit,
    "mmtests": render_mmtests,
    "json": render_json,
}


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize(("render", "suffix"), [(render_text, "txt"), (render_mmtests, "mmtests")])
def test_text_is_as_it_was_looked_at(name, render, suffix):
    """Golden files; after a wanted change: python server/tests/reports/rewrite.py, then read the diff."""
    assert render(EXAMPLES[name]()) == (GOLDEN / f"{name}.{suffix}").read_text()


KEPT = sorted((Path(__file__).parent / "kept").glob("*.json"))


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_a_report_kept_by_an_older_version_says_what_it_said(path):
    """Labs have such reports: a contract that no longer reads one comes with a migration of kept_reports."""
    report = Report.model_validate_json(path.read_text())
    assert render_text(report) == path.with_suffix(".txt").read_text()
    for render in RENDERERS.values():
        assert render(report)


def test_siblings_are_told_by_the_numbers_of_their_cpus():
    whole = xeon().model_copy(update={"core": [*range(16), *range(16)], "l3": 2 * ([0] * 8 + [1] * 8)})
    whole = whole.model_copy(update={"node": whole.l3, "package": whole.l3})
    assert topology(whole).endswith(", SMT siblings at +16")
    holes = whole.model_copy(update={"online": [*range(16), *range(20, 36)]})
    assert topology(holes).endswith(", SMT siblings at +20")


def fits(line):
    """78 columns; a quoted console keeps its lines, and neither a URL nor one word of a command is cut."""
    return len(line) <= 78 or line.startswith("| ") or "://" in line or (line.startswith("    ") and one_word(line))


def one_word(line):
    try:
        return len(shlex.split(line.removesuffix("\\"))) <= 2  # an option `-x` stays with its value
    except ValueError:
        return False


@pytest.mark.parametrize("name", EXAMPLES)
def test_text_fits_a_mail(name):
    for line in render_text(EXAMPLES[name]()).splitlines():
        assert len(line) <= 78 or line.startswith("| ")
        assert line == line.rstrip()


WORDS = st.lists(st.text("abcXYZ09-_/=.,'\"()%<", min_size=1, max_size=120), min_size=1, max_size=30)
TEXTS = WORDS.map(" ".join)


@settings(max_examples=60, deadline=None)
@given(st.lists(TEXTS, min_size=12, max_size=12), st.sampled_from(sorted(EXAMPLES)))
def test_text_fits_a_mail_whatever_is_in_it(texts, name):
    for line in render_text(with_texts(EXAMPLES[name](), texts)).splitlines():
        assert fits(line), line


def with_texts(report, texts):
    """The report with other words wherever a person, a compiler or a device chose them."""
    title, summary, headline, fact, reason, command, cmdline, subject, compiler, finding, option, scenario = texts
    failure = Failure(kind=ErrorKind.KERNEL, summary=summary, excerpt="", advice=summary)
    targets = []
    for one in report.targets:
        environment = one.environment.model_copy(
            update={
                "device": fact,
                "facts": dict.fromkeys(one.environment.facts, fact),
                "commands": {scenario: command},
                "cmdline": dict.fromkeys(one.environment.cmdline, cmdline),
            }
        )
        cells = [
            cell.model_copy(update={"reason": reason, "scenario": scenario[:200], "unit": option[:60]})
            for cell in one.comparisons
        ]
        found = [each.model_copy(update={"title": finding}) for each in one.findings]
        update = {"headline": headline, "environment": environment, "comparisons": cells, "findings": found}
        targets.append(one.model_copy(update={**update, "device_summary": fact}))
    builds = [
        build.model_copy(update={"compiler": compiler, "release": subject, "reproducer": command, "failure": failure})
        for build in report.submission.builds
    ]
    patches = [patch.model_copy(update={"subject": subject}) for patch in report.submission.apply.patches]
    apply = report.submission.apply.model_copy(update={"patches": patches})
    update = {"title": title, "builds": builds, "apply": apply, "failure": failure}
    submission = report.submission.model_copy(update=update)
    attempts = [each.model_copy(update={"failure": failure, "device": fact}) for each in report.attempts]
    return report.model_copy(
        update={"submission": submission, "targets": targets, "attempts": attempts, "config_diff": [option]}
    )


@pytest.mark.parametrize("name", EXAMPLES)
def test_verdict_comes_first(name):
    report = EXAMPLES[name]()
    top = render_text(report).splitlines()[:10]
    assert any(report.targets[0].device_type in line for line in top)


def test_json_is_the_report():
    for make in EXAMPLES.values():
        report = make()
        assert Report.model_validate_json(render_json(report)) == report


# --- no evidence: the mean and nothing else, in any format ------------------------------------------------------


def with_bandwidth(baseline, candidate):
    """The improvement report with only bandwidth, as measured on an emulated device."""
    cells = {
        ("fsync", "", "bandwidth", Arm.BASELINE): baseline,
        ("fsync", "", "bandwidth", Arm.CANDIDATE): candidate,
    }
    one = target(
        11, XFS, "xeon-2s", samples(XFS, "xeon-2s", cells), [""], list(Arm), xeon(), XEON, (3, 3), {"fsync": "fio"}
    )
    return improvement().model_copy(update={"targets": [one]})


LOW, HIGH = 4321.25, 8765.75


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(-400, 400), min_size=1, max_size=8), st.lists(st.floats(-400, 400), min_size=1, max_size=8))
@pytest.mark.parametrize("render", [render_text, render_markdown, render_html, render_junit, render_mmtests])
def test_emulated_throughput_is_a_value_only(render, spread_a, spread_b):
    """Twice as fast or half as fast, noisy or not: the documents differ in the two means and in nothing else, so there
    is no p, interval, sign, arrow or colour that depends on them."""

    def centred(mean, spread):
        size = min(len(spread_a), len(spread_b))
        values = spread[:size]
        return [mean + value - sum(values) / size for value in values]

    faster = with_bandwidth(centred(LOW, spread_a), centred(HIGH, spread_b))
    slower = with_bandwidth(centred(HIGH, spread_b), centred(LOW, spread_a))
    quiet = with_bandwidth([LOW] * min(len(spread_a), len(spread_b)), [HIGH] * min(len(spread_a), len(spread_b)))
    swapped = (
        render(slower).translate({}).replace("4321.25", "\0").replace("8765.75", "4321.25").replace("\0", "8765.75")
    )
    assert render(faster) == swapped
    assert render(faster) == render(quiet)


def test_no_boot_of_a_figure_without_evidence_is_drawn():
    page = render_html(with_bandwidth([LOW] * 3, [HIGH] * 3))
    assert "4321.25" in page
    assert "<svg" not in page


def test_the_models_hold_nothing_else_either():
    for make in EXAMPLES.values():
        for one in json.loads(render_json(make()))["targets"]:
            for cell in one["comparisons"]:
                if cell["evidence"] == Evidence.NONE:
                    assert {cell["effect"], cell["p"], cell["p_adjusted"], cell["p_signflip"], cell["delta"]} == {None}
                    assert cell["ci95"] is None
                    for arm in ("baseline", "candidate"):
                        assert cell[arm] is None or cell[arm]["stddev"] is None


# --- what submitted code says is data ---------------------------------------------------------------------------

HOSTILE = (
    "</pre><script>alert(1)</script><img src=x onerror=alert(2)>\x1b[2J\x1b]0;owned\x07\u202e]]> "
    "`code` **bold** [a](javascript:x) | cell\r\nxfs-fsync on xeon-2s: IMPROVEMENT\x00 &amp; {{ 7*7 }}"
)


def hostile():
    report = panic()
    one = report.targets[0]
    findings = [finding.model_copy(update={"title": HOSTILE, "excerpt": HOSTILE}) for finding in one.findings]
    environment = one.environment.model_copy(
        update={"facts": {HOSTILE: HOSTILE}, "commands": {HOSTILE: HOSTILE}, "cmdline": {Arm.BASELINE: HOSTILE}}
    )
    failure = Failure(kind=ErrorKind.KERNEL, summary=HOSTILE, excerpt=HOSTILE, advice=HOSTILE)
    builds = [
        build.model_copy(update={"compiler": HOSTILE, "reproducer": HOSTILE, "failure": failure})
        for build in report.submission.builds
    ]
    submission = report.submission.model_copy(update={"title": HOSTILE, "failure": failure, "builds": builds})
    attempts = [attempt.model_copy(update={"failure": failure, "device": HOSTILE}) for attempt in report.attempts]
    comparisons = [cell.model_copy(update={"reason": HOSTILE}) for cell in one.comparisons]
    bad = one.model_copy(
        update={
            "findings": findings,
            "environment": environment,
            "headline": HOSTILE,
            "failure": failure,
            "comparisons": comparisons,
        }
    )
    return report.model_copy(
        update={"submission": submission, "targets": [bad], "attempts": attempts, "config_diff": [HOSTILE]}
    )


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.seen, self.attributes = set(), set()

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}


@pytest.mark.parametrize("render", [render_text, render_markdown, render_html, render_junit, render_mmtests])
def test_no_control_character_survives(render):
    text = render(hostile())
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)


@pytest.mark.parametrize("name", [*EXAMPLES, "hostile"])
def test_html_runs_nothing_and_loads_nothing(name):
    page = render_html(hostile() if name == "hostile" else EXAMPLES[name]())
    tags = Tags()
    tags.feed(page)
    assert not tags.seen & {"script", "img", "iframe", "link", "object", "embed", "form", "base"}
    assert not [attribute for attribute in tags.attributes if attribute.startswith("on")]
    own = re.escape(improvement().lab_url)  # the lab's address is its own word
    assert not re.search(rf"""(?:src|href)\s*=\s*["'](?!#|{own}/)|url\(|@import""", page)
    assert "{{ 7*7 }}" in page or name != "hostile"


def test_a_forged_verdict_stays_inside_its_line():
    lines = render_text(hostile()).splitlines()
    assert not [line for line in lines if line.startswith("xfs-fsync on xeon-2s: IMPROVEMENT")]


def test_markdown_neither_formats_nor_links_what_came_in():
    text = re.sub(r"(?ms)^(`{3,})$.*?^\1$", "", render_markdown(hostile()))
    text = re.sub(r"`[^`\n]*`", "", text)
    assert "<script" not in text.replace("\\<", "")
    assert not re.search(r"(?<!\\)\[a\]", text)
    assert "**bold**" not in text


# --- JUnit ----------------------------------------------------------------------------------------------------------


@dataclass
class Junit:
    root: xml.Element

    def case(self, name):
        return next(case for case in self.root.iter("testcase") if name in case.get("name"))


def junit(report):
    return Junit(xml.fromstring(render_junit(report)))


def test_junit_maps_verdicts():
    good = junit(improvement())
    assert [child.tag for child in good.case("locks_per_flush")] == ["system-out"]
    assert good.case("bandwidth").find("skipped").get("type") == "no_evidence"
    dead = junit(panic())
    assert dead.case("locks_per_flush").find("failure") is not None
    assert dead.case("survive").find("failure").get("type") == "kernel"
    assert junit(study()).case("cache_shard").find("skipped").get("type") == "unsupported"


def test_junit_a_regression_fails_and_infrastructure_is_an_error():
    worse = {
        ("fsync", "", "locks_per_flush", Arm.BASELINE): (33, 33),
        ("fsync", "", "locks_per_flush", Arm.CANDIDATE): (99, 99),
    }
    one = target(11, XFS, "xeon-2s", samples(XFS, "xeon-2s", worse), [""], list(Arm), xeon(), XEON, (2, 2), {})
    found = junit(improvement().model_copy(update={"targets": [one]}))
    assert found.case("locks_per_flush").find("failure").get("type") == "regression"
    lost = Failure(kind=ErrorKind.INFRASTRUCTURE, summary="the device lost power")
    one = target(11, XFS, "xeon-2s", None, [""], list(Arm), None, XEON, (0, 2), {}, failure=lost)
    found = junit(improvement().model_copy(update={"targets": [one]}))
    assert found.case("locks_per_flush").find("error").get("type") == "infrastructure"
    assert found.root.get("failures") == "0"


ATTRIBUTES = {
    "testsuites": {"name", "time", "tests", "failures", "disabled", "errors"},
    "testsuite": {"name", "tests", "failures", "errors", "time", "disabled", "skipped", "timestamp", "hostname", "id"},
    "testcase": {"name", "assertions", "time", "classname", "status"},
    "failure": {"message", "type"},
    "error": {"message", "type"},
    "skipped": {"message", "type"},
    "system-out": set(),
}
CHILDREN = {
    "testsuites": ["testsuite"],
    "testsuite": ["properties", "testcase", "system-out", "system-err"],
    "testcase": ["skipped", "error", "failure", "system-out", "system-err"],
}


@pytest.mark.parametrize("name", [*EXAMPLES, "hostile"])
def test_junit_keeps_to_the_schema(name):
    """Element order and attributes of the junit.xsd that Jenkins and GitLab read by."""
    root = junit(hostile() if name == "hostile" else EXAMPLES[name]()).root
    for element in root.iter():
        assert set(element.attrib) <= ATTRIBUTES[element.tag]
        order = [CHILDREN[element.tag].index(child.tag) for child in element]
        assert order == sorted(order)
    for suite in root:
        assert int(suite.get("tests")) == len(suite.findall("testcase"))
        assert int(suite.get("skipped")) == len(suite.findall("testcase/skipped"))


def test_a_series_that_does_not_apply_is_an_error():
    failure = Failure(kind=ErrorKind.USER, summary="hunk 2 of kernel/workqueue.c does not apply", advice="rebase it")
    bare = improvement()
    submission = bare.submission.model_copy(update={"failure": failure, "builds": []})
    report = bare.model_copy(update={"submission": submission, "targets": [], "attempts": []})
    assert junit(report).case("submission").find("error").get("type") == "user"
    for render in (render_text, render_markdown, render_html):
        assert "hunk 2" in render(report)


# --- pieces -----------------------------------------------------------------------------------------------------


def run(script):
    """What a shell makes of it, with a tuxmake that only shows its arguments and its environment's flags."""
    stand_in = 'tuxmake() { printf "<%s>" "$KCFLAGS" "$KAFLAGS" "$@"; }\n'
    done = subprocess.run(["sh", "-euc", stand_in + script], capture_output=True, text=True, check=True, cwd="/")
    return done.stdout


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text("abc-=/ '\"\\$`*#;&|", max_size=30), min_size=1, max_size=20))
def test_a_broken_command_line_is_still_the_same_command(arguments):
    lines = shell_lines(f"tuxmake {shlex.join(arguments)}", "    ")
    assert run("KCFLAGS= KAFLAGS=\n" + "\n".join(lines)) == "".join(f"<{each}>" for each in ["", "", *arguments])
    assert all(len(line) <= 76 or one_word(line) for line in lines)


def test_the_reproducer_can_be_pasted():
    lines = shell_lines(REPRODUCER, "    ")
    assert max(map(len, lines)) <= 76
    assert run("\n".join(lines)) == run(REPRODUCER)
    assert "<--environment=KBUILD_BUILD_TIMESTAMP=2026-01-01 00:00:00 UTC>" in run("\n".join(lines))


def test_a_comment_swallows_no_command():
    assert shell_lines("# linux/ is linux-6.12\nmake") == ["make"]


def test_text_that_is_no_command_is_wrapped_all_the_same():
    lines = shell_lines("it's " + "no command " * 12, "    ")
    assert max(map(len, lines)) <= 76
    assert " ".join(" ".join(lines).split()) == "it's " + " ".join(["no command"] * 12)


@pytest.mark.parametrize("render", [render_text, render_markdown, render_html])
def test_what_both_kernels_share_is_said_once(render):
    document = render(improvement())
    assert document.count("config kernel modules") == 1
    assert document.count("tsc=reliable no_timer_check") == 1
    assert document.count("GNU ld 2.40") == 1
    assert "apply the series" in html.unescape(document)
    assert "reused" not in document
    assert "built in 9 min" in document


def test_command_lines_that_differ_are_both_shown():
    report = improvement()
    one = report.targets[0]
    lines = {
        Arm.BASELINE: "quiet wqlab.ip=192.0.2.1/24 wqlab.token=a",
        Arm.CANDIDATE: "quiet workqueue.power_efficient=1 wqlab.token=b",
    }
    environment = one.environment.model_copy(update={"cmdline": lines})
    text = render_text(report.model_copy(update={"targets": [one.model_copy(update={"environment": environment})]}))
    assert "Kernel command line of the baseline, without the lab's own wqlab.* words:\n    quiet\n" in text
    assert "workqueue.power_efficient=1" in text


@pytest.mark.parametrize("render", [render_text, render_markdown, render_html])
def test_neither_token_nor_key_is_shown(render):
    document = render(improvement())
    assert "-token" not in document
    assert SSH_KEY not in document
    assert "without the lab" in document


def test_what_only_the_plan_needs_is_out_of_the_way():
    assert "lock_entries" not in render_text(improvement())
    assert "lock_entries" not in render_markdown(improvement())
    before, details = render_html(improvement()).split("<details>")
    assert "lock_entries" not in before
    assert "lock_entries" in details.split("</details>")[0]


@pytest.mark.parametrize("render", [render_text, render_markdown, render_html])
def test_a_report_says_what_it_is_of_and_how_to_compute_it_again(render):
    document = html.unescape(render(study()))
    head = document[: document.index("dm-crypt-affinity on ryzen")].split("</style>")[-1]
    for part in (
        "dm-crypt under affinity scopes",
        "submission 8",
        "2026-03-14 15:09",
        "http",
        "/r/8",
    ):
        assert part.replace("-", "") in head.replace("\\", "").replace("-", "")
    assert "wqlab samples 12 -o run12.csv\n" in document
    assert "wqlab compare run12.csv --reference scope=system,strict=0" in document


def test_all_targets_of_a_submission_are_computed_again_as_one_family():
    both = study().model_copy(update={"targets": [*improvement().targets, *study().targets]})
    document = render_markdown(both)
    assert "wqlab samples 11 -o run11.csv\nwqlab samples 12 -o run12.csv\n" in document
    assert document.count("wqlab compare run11.csv run12.csv --reference scope=system,strict=0\n") == 1


def test_the_reproducer_says_where_the_configuration_is():
    assert "wqlab logs 8 --build 1 --config -o config" in " ".join(render_text(study()).split())
    assert f"\n    {study().config_sha256}\n" in render_text(study())


def test_a_target_that_measured_nothing_has_no_tables():
    lost = Failure(kind=ErrorKind.INFRASTRUCTURE, summary="the device lost power")
    one = target(11, XFS, "xeon-2s", None, [""], list(Arm), None, XEON, (0, 2), {}, failure=lost)
    text = render_text(improvement().model_copy(update={"targets": [one]}))
    assert "No figures." in text
    assert "n/a" not in text
    reason = "* locks_per_flush, locks_per_fsync: FAILED: infrastructure: the device lost power"
    assert reason in " ".join(text.split())


def test_every_primary_has_its_figure_and_its_table():
    page = render_html(study())
    primaries = {(c.scenario, c.metric) for c in study().targets[0].comparisons if c.role is Role.PRIMARY}
    for scenario, metric in primaries:
        assert f"{scenario}: {metric} of every boot" in page
    assert page.count("<svg") == page.count("<figure>") == page.count('<div class="figure">')
    assert "improvement" in page.split("<svg")[1]
