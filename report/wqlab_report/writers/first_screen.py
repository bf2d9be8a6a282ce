"""Write the first screen of a report as HTML: headline, claims, boots, and what a reader checks.

The lab's page of a report and the HTML file begin with it. It has no script and no style; all input is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from wqlab_comparison import words
from wqlab_contracts.api.report import Report, TargetReport
from wqlab_contracts.enums import Direction, ErrorKind, Question, SubmissionState, Verdict

from .. import plain_text
from ..content import failures, instrument_tables, shared_text
from ..document import claims as found
from ..document.full_target import anchor
from ..figures.figures import draw_pairs
from ..units import readable

_SHOWN = 3
"""Maximum number of comparisons listed for a claim."""
_FORMATS = {"Text": "txt", "Markdown": "md", "JSON": "json", "JUnit": "xml", "MMTests": "mmtests"}
_TONES = {
    Verdict.IMPROVEMENT: "good",
    Verdict.REGRESSION: "bad",
    Verdict.FAILED: "bad",
    Verdict.EQUIVALENT: "same",
    Verdict.INCONCLUSIVE: "unsure",
}
_CAUSES = {
    ErrorKind.USER: "the series or the request",
    ErrorKind.KERNEL: "the kernel under test",
    ErrorKind.INFRASTRUCTURE: "the lab, not the kernel",
    ErrorKind.CANCELED: "canceled by a user",
}
_FAILURE_TONES = {ErrorKind.INFRASTRUCTURE: "unsure", ErrorKind.CANCELED: "none"}


@dataclass(frozen=True)
class Claim:
    label: str
    lines: Sequence[Markup]
    verdict: Verdict | None = None

    @property
    def sign(self) -> str:
        return words.SIGN[self.verdict] if self.verdict else ""

    @property
    def tone(self) -> str:
        return _TONES[self.verdict] if self.verdict else "none"


def first_screen(report: Report, *, page: bool = False) -> Markup:
    """Return the first screen. `page`: of the lab's page, whose links stay in the lab and select a comparison there."""
    report = readable(report)
    main = failures.main_failure(report)
    record = next((each for each in report.targets if shared_text.canaries(each)), None)
    return Markup(  # noqa: S704 - the template escapes
        _template().render(
            report=report,
            submission=report.submission,
            base="" if page else report.lab_url.rstrip("/"),
            local=shared_text.is_local(report),
            head=clean(shared_text.head(report)),
            title=clean(title(report)),
            summary=clean(report.summary).replace(" -> ", " \u2192 "),
            is_finished=report.submission.state is SubmissionState.FINISHED,
            formats=_formats(report, page=page),
            measured=[each for each in report.targets if each.values],
            claims=_claims(report, page=page) if report.targets else [],
            picture=_picture(report),
            checks=found.checks(report),
            record=record,
            failure=main,
            cause=_CAUSES[main.kind] if main else "",
            tone=_FAILURE_TONES.get(main.kind, "bad") if main else "",
            clean=clean,
            anchor=anchor,
        )
    )


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("wqlab_report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template("first_screen.html.j2")


def title(report: Report) -> str:
    """Return the title of the series on one line."""
    return " ".join(report.submission.title.split()) or f"Submission {report.submission.id}"


def clean(text: str) -> str:
    """Remove all control characters except line ends."""
    return "\n".join(plain_text.printable(line) for line in text.splitlines())


def _formats(report: Report, *, page: bool) -> list[tuple[str, str]]:
    """Return name and address of each format of the report. KCIDB takes final results of a lab only."""
    address = f"/r/{report.submission.id}" if page else shared_text.address(report)
    final = report.submission.state is SubmissionState.FINISHED and not shared_text.is_local(report)
    offered = _FORMATS | ({"KCIDB": "kcidb.json"} if final else {})
    if any(target.instrument for target in report.targets):
        offered |= {"Profile (speedscope, Firefox Profiler)": "collapsedstack.txt"}
    return [(name, f"{address}.{suffix}") for name, suffix in offered.items()]


# --- claims -----------------------------------------------------------------------------------------------------


def _claims(report: Report, *, page: bool) -> list[Claim]:
    """Return what is better, worse, open and not measured, each with its first figures."""
    claims, others = found.claims_of(report), failures.others(report)
    given = [
        Claim("fails", [_target(each, others) for each in claims.failed], Verdict.FAILED),
        Claim("worse", _figures(claims.worse, page=page), Verdict.REGRESSION),
        Claim("better", _figures(claims.better, page=page), Verdict.IMPROVEMENT),
        Claim(
            "open",
            [*_figures(claims.open, page=page, reasons=True), *_more_blocks(report, page=page)],
            Verdict.INCONCLUSIVE,
        ),
    ]
    if not claims.worse and not claims.failed and claims.judged:
        given.append(Claim("worse: 0", [_none_worse(claims, page=page)], Verdict.EQUIVALENT))
    without = [_target(each, others) for each in claims.missing]
    if claims.values:
        names = ", ".join(map(_plain, claims.values))
        why = "the devices are emulated, and their clock is no evidence."
        without.insert(0, Markup("<strong>{}:</strong> {}").format(names, why))
    return [each for each in [*given, Claim("not measured", without)] if each.lines]


def _more_blocks(report: Report, *, page: bool) -> list[Markup]:
    """Return a link that repeats the submission with the blocks that would probably decide, and how long they take."""
    blocks, seconds = found.deciding_blocks(report)
    if not page or not blocks or shared_text.is_local(report):
        return []
    takes = f", about {max(1, round(seconds / 60))} min" if seconds else ""
    return [
        Markup('<a href="/submissions/{}?retry={}">run {}{}</a>').format(
            report.submission.id, blocks, words.count(blocks, "block"), takes
        )
    ]


def _none_worse(claims: found.Claims, *, page: bool) -> Markup:
    is_ = "is" if claims.decided == 1 else "are"
    text = f"{claims.decided} of {words.count(claims.judged, 'judged comparison')} {is_} decided"
    if still := len(claims.open):
        text += f", {still} {'is' if still == 1 else 'are'} open"
    link = Markup(' <a href="#numbers">All comparisons</a>') if page else ""
    return Markup("<strong>Nothing is judged worse.</strong> {}.{}").format(text, link)


def _figures(cells: Sequence[found.Cell], *, page: bool, reasons: bool = False) -> list[Markup]:
    lines = []
    shown = cells[:_SHOWN]
    for at, cell in enumerate(shown, start=1):
        reason = cell.of.reason if reasons else ""
        if at < len(shown) and shown[at].of.reason == reason:
            reason = ""  # the next comparison gives it
        why = Markup('<span class="report-reason">{}</span>').format(_line(reason)) if reason else ""
        lines.append(
            Markup('<a href="{}">{}</a> {} <span class="muted">{}</span>{}').format(
                f"?cell={quote(cell.key, safe='')}#cell" if page else f"#{anchor(cell.target)}",
                _plain(words.metric(cell.of)),
                _figure(cell),
                _where(cell),
                why,
            )
        )
    more = len(cells) - _SHOWN
    return [*lines, Markup('<span class="muted">and {} more</span>').format(more)] if more > 0 else lines


def _figure(cell: found.Cell) -> Markup:
    """Return the figures of a comparison: both counts if they are exact, else effect and interval."""
    of = cell.of
    if of.exact and of.baseline and of.candidate:
        decimals = words.places([of.baseline.mean, of.candidate.mean])
        sides = [words.number(each.mean, decimals) for each in (of.baseline, of.candidate)]
        return Markup('<strong><span class="report-a">{}</span> → <span class="report-b">{}</span></strong>').format(
            *sides
        )
    text = f"{words.effect(of)} {words.interval(of)}".strip().replace("-", "\u2212")
    return Markup("<strong>{}</strong>").format(text) if text else Markup("")


def _where(cell: found.Cell) -> str:
    """Return `on xeon-2s (emulated), HIGH, scope=cache`."""
    device = f"{cell.target.device_type}{failures.device_kind(cell.target)}"
    scenario = cell.of.scenario if len(cell.target.plan.scenarios) > 1 else ""
    return f"on {shared_text.joined([device, scenario, cell.of.setting])}"


def _target(target: TargetReport, others: Sequence[TargetReport]) -> Markup:
    """Return a target with the reason in place of figures; unless it is of `others`, a link to the main failure."""
    said: str | Markup = Markup('<a href="#failure">the failure below</a>')
    if any(target is each for each in others):
        said = _line(instrument_tables.headline(target))
    return Markup('<a href="#{}">{}</a>: {}').format(anchor(target), _line(failures.name(target)), said)


def _plain(metric: str) -> str:
    """Return a metric's name as words."""
    return metric.replace("_", " ")


def _line(text: str) -> str:
    return plain_text.printable(" ".join(text.split()))


# --- boots ------------------------------------------------------------------------------------------------------


def _picture(report: Report) -> Markup:
    """Return both boots of each block of the deciding comparison as a drawing; empty without evidence."""
    cell = found.deciding(report)
    pairs = found.pairs(report, cell) if cell is not None and words.is_evidence(cell.of) else []
    if cell is None or not pairs:
        return Markup("")
    of, shown = cell.of, pairs[: found.MOST_BLOCKS]
    better = "" if of.direction is Direction.NONE else words.DIRECTION[of.direction]
    names = ("baseline", "candidate") if of.question is Question.KERNEL else (of.reference, of.setting)
    more = f"{words.count(len(pairs) - len(shown), 'more block')} below" if len(pairs) > len(shown) else ""
    return Markup(
        '<figure class="report-boots">'
        '<figcaption><strong>{}, each boot</strong> <span class="muted">{}</span></figcaption>'
        '{}<p class="report-key"><span class="report-a">● {}</span> <span class="report-b">◆ {}</span> '
        '<span class="muted">{}</span></p></figure>'
    ).format(
        _plain(words.metric(of)),
        shared_text.joined([of.unit, better]),
        Markup(draw_pairs([(pair.label, pair.baseline, pair.candidate) for pair in shown])),  # noqa: S704 - escaped there
        *names,
        more,
    )
