"""Readings of heads: a worker fetches a head and reads its `.wqlab.yaml`; the result becomes a request, or a reason."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select, update
from sqlalchemy.orm import Session, joinedload

from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.api.touches import TouchedFile
from wqlab_contracts.enums import HeadDecision, HeadNews
from wqlab_contracts.messages import GitSeries, Series, Target
from wqlab_contracts.messages.forge_readings import ForgeReadingJob, ForgeReadingResult
from wqlab_contracts.specs import Forge, Tree
from wqlab_contracts.tree_config import TreeConfig, read_tree_config

from ...http.problems import not_found
from ...jobs import claims
from ...jobs.kinds import Context, Kind
from ...models import ForgeChange, ForgeHead, HeadReading
from ..match_watches import Propose

MAX_TARGETS = 16
"""Maximum number of targets of a head, as in `.wqlab.yaml`."""


@dataclass(frozen=True)
class NotMeasured:
    """Why a head is not measured: SILENT, NOTHING or WRONG."""

    decision: HeadDecision
    reason: str


class HeadReadingKind(Kind[HeadReading]):
    """Readings of heads; the tick makes a submission of the result."""

    model = HeadReading

    def ended(self, context: Context, job: HeadReading) -> None:
        read = update(ForgeHead).where(ForgeHead.id == int(job.key), ForgeHead.news != HeadNews.ENDED)
        context.session.execute(read.values(news=HeadNews.NEW))


def order_reading(session: Session, row: ForgeHead, forge: Forge, tree: Tree) -> None:
    """Queue the reading of a head."""
    reading = HeadReading(
        key=str(row.id),
        payload=ForgeReadingJob(
            url=forge.git_url,
            head=row.head,
            base_branch=row.base_branch,
            config_from="head" if row.trusted else "base",
            tree=tree,
        ),
    )
    claims.queue(session, reading)


def lock(session: Session, head_id: int) -> ForgeHead:
    """Lock and return a head. Raises ApiProblem 404."""
    row = session.scalar(
        select(ForgeHead)
        .where(ForgeHead.id == head_id)
        .with_for_update(of=ForgeHead)
        .options(joinedload(ForgeHead.reading))
        .execution_options(populate_existing=True)
    )
    if row is None:
        raise not_found("forge head", head_id)
    return row


def request_of(
    forge: Forge, change: ForgeChange, head: ForgeHead, result: ForgeReadingResult, propose: Propose
) -> SubmissionRequest | NotMeasured:
    """Return what is measured of a head that was read. `propose` returns targets for changed files."""
    if result.config is None:
        return NotMeasured(HeadDecision.SILENT, "there is no .wqlab.yaml")
    try:
        config = read_tree_config(result.config)
    except ValueError as error:
        return NotMeasured(HeadDecision.WRONG, str(error))
    if change.number is None and not config.matches_branch(change.branch):
        return NotMeasured(HeadDecision.SILENT, f"pushes to {change.branch} are not measured")
    if change.number is not None and not config.pull_requests:
        return NotMeasured(HeadDecision.SILENT, "pull requests are not measured")
    if not result.paths:
        return NotMeasured(HeadDecision.NOTHING, "no file is changed")
    if not config.matches_paths(result.paths, complete=result.paths_complete):
        return NotMeasured(HeadDecision.NOTHING, "no changed file is among the paths of .wqlab.yaml")
    targets = _targets(config, result.touched or [], propose)
    if isinstance(targets, NotMeasured):
        return targets
    return SubmissionRequest(
        series=Series(git=GitSeries(url=forge.git_url, ref=head.head, base=result.merge_base)),
        tree=forge.tree,
        targets=targets,
        blocks=config.blocks,
        recipe=config.recipe,
    )


def _targets(config: TreeConfig, touched: list[TouchedFile], propose: Propose) -> list[Target] | NotMeasured:
    """Return the targets of the file, or those that the lab proposes for what the commits change."""
    if not config.what_it_touches:
        return [target.as_target() for target in config.targets]
    proposed = propose(touched)
    if not proposed:
        return NotMeasured(HeadDecision.NOTHING, "the lab has no plan for the files and functions that are changed")
    own = {target.target: target.as_target() for target in config.targets}
    if not own:
        pairs = [name.partition("@") for name in proposed[:MAX_TARGETS]]
        return [Target(plan=plan, device_type=device_type) for plan, _, device_type in pairs]
    chosen = [target for name, target in own.items() if name in proposed]
    if not chosen:
        reason = f"the lab would measure {', '.join(proposed)}, and targets of .wqlab.yaml has none of these"
        return NotMeasured(HeadDecision.NOTHING, reason)
    return chosen
