"""`wqlab ab`: compare two kernels on one machine or in an emulator, without a lab."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from wqlab_contracts.enums import PAIR

from ..errors import UsageError
from ..formatting import one_line
from .session import DETACHED_EXIT, Session, session_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wqlab_contracts.data_folder import DataFolder
    from wqlab_contracts.enums import Arm

    from ..ab.kernels import GivenKernel
    from ..ab.prepare import Wanted
    from ..ab.recipes import Recipe
    from ..ab.state import StateFolder

_EMULATOR = "qemu"


def ab(  # noqa: PLR0917 - the options of a command
    context: typer.Context,
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="[qemu|USER@HOST]", help="An emulator on this host, or a machine by SSH", show_default=False
        ),
    ] = None,
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[BASELINE CANDIDATE]",
            help="Commits of the tree in this folder, `.` for its files as they are, or COMMIT+FILE for an mbox on a"
            " commit",
            show_default=False,
        ),
    ] = None,
    kernels: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--kernels",
            metavar="A B",
            help="Two kernels: a bzImage, the folder of a build, or deb:linux-image-...",
        ),
    ] = None,
    modules: Annotated[
        tuple[Path, Path] | None,
        typer.Option("--modules", metavar="A B", help="Folders of their modules, unless they are beside the images"),
    ] = None,
    settings: Annotated[
        tuple[str, str] | None,
        typer.Option("--settings", metavar="A B", help="Compare two settings of one kernel, such as scope=cache"),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Boot one kernel in an emulator, and check what must hold on any kernel")
    ] = False,
    config: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|machine",
            help="Build with this configuration and what the plan needs; `machine`: that of the machine's kernel",
        ),
    ] = None,
    loaded: Annotated[
        bool, typer.Option("--loaded-modules", help="With --config: build only modules that are loaded there")
    ] = False,
    plan: Annotated[str | None, typer.Option(metavar="PLAN", help="Test plan")] = None,
    topology: Annotated[str, typer.Option(metavar="TYPE", help="Device type to emulate")] = "tiny",
    blocks: Annotated[
        int | None, typer.Option(min=1, max=100, help="Pairs of boots; by default as many as the plan says")
    ] = None,
    scenario: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only this scenario; repeatable")] = None,
    setting: Annotated[list[str] | None, typer.Option(metavar="SETTING", help="Only this setting; repeatable")] = None,
    parameter: Annotated[
        list[str] | None, typer.Option("--parameter", metavar="NAME=VALUE", help="Parameter of the plan; repeatable")
    ] = None,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Name of the folder wqlab-ab-NAME")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on in the folder that was begun last here, or in the one named")
    ] = False,
    rootfs: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The lab's root filesystem image, if it cannot be made here")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before a machine is used")] = False,
    data: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder with test plans and device types", show_default=False)
    ] = None,
) -> None:
    """Compare two kernels on one machine or in an emulator, without a lab.

    They boot in turn, and a plan is measured on both. Kernels, consoles and report are in the folder wqlab-ab-NAME.
    Ctrl-C loses only the block that is being measured.
    """
    session = session_of(context)
    _need_worker()
    if resume:
        from ..ab.state import StateFolder, latest_folder

        folder = StateFolder(Path(target).absolute()) if target else latest_folder()
        session.output.note(f"going on in {folder.path.name}")
        _look_again(session, folder, yes=yes)
        _measure(session, folder)
    if target is None or (target != _EMULATOR and "@" not in target):
        raise UsageError(
            f"{target} is neither qemu nor USER@HOST" if target else "no target is named",
            "`wqlab ab qemu ...` for an emulator here, `wqlab ab root@HOST ...` for a machine",
        )
    names = _names(target, sources or [], kernels, one=quick or settings is not None)
    if quick:
        plan = _quick_plan(target, plan)
    if plan is None:
        raise UsageError("no plan is named", "name one with --plan; docs/plans.md lists them")
    from ..ab.job import find_data
    from ..ab.state import new_folder

    known = find_data(data)
    recipe = None
    if not all(in_file for _, in_file in names):
        if target != _EMULATOR:
            _check_machine(target)
        recipe = _recipe(session, known, target, plan, topology, config, only_loaded=loaded)
    found = _find_kernels(session, known, names, modules, recipe)
    if quick:
        _check_quickly(session, known, next(iter(found.values())), topology, rootfs)
    folder = new_folder(name or plan)
    wanted = _wanted(session, found, plan, blocks, scenario, settings or setting, parameter)
    if target == _EMULATOR:
        _prepare_emulator(session, folder, wanted, topology, rootfs, known)
    else:
        _prepare_machine(session, folder, wanted, target, rootfs, known, yes=yes)
    _measure(session, folder)


def _check_machine(target: str) -> None:
    """Raise UsageError if kernels cannot be started on the machine, before they are built, which takes long."""
    from ..ab.machine import LEAST_IMAGE_KIB, check, look_at

    check(look_at(target), LEAST_IMAGE_KIB, [])


def _names(target: str, sources: list[str], kernels: tuple[str, str] | None, *, one: bool) -> list[tuple[str, bool]]:
    """Return each kernel's name, with True if it is in a file. Raises UsageError unless there are two, or `one`."""
    from ..ab.kernels import is_file_name

    names = [(each, True) for each in kernels or ()] + [(each, is_file_name(each)) for each in sources]
    if len(names) != (1 if one else 2):
        if one:
            raise UsageError(
                "one kernel is needed", f"`wqlab ab {target} HEAD ...`, or the path of an image: ./bzImage"
            )
        raise UsageError(
            "two kernels are needed",
            f"`wqlab ab {target} HEAD~1 HEAD --plan PLAN`, or --kernels A B in place of the commits",
        )
    return names


def _recipe(  # noqa: PLR0917 - the options of the command
    session: Session, data: DataFolder, target: str, plan: str, topology: str, config: str | None, *, only_loaded: bool
) -> Recipe:
    """Return the recipe of the kernels, and print the options that it adds to the user's configuration."""
    from ..ab.machine import configuration
    from ..ab.recipes import added_options, read_config, recipe_for

    if config is None:
        return recipe_for(data, plan, topology if target == _EMULATOR else None)
    if target == _EMULATOR:
        if config == "machine" or only_loaded:
            raise UsageError("an emulator has no configuration and no modules of its own", "name a file: --config FILE")
        recipe = recipe_for(data, plan, topology, read_config(Path(config)))
    else:
        found, modules = configuration(target) if config == "machine" or only_loaded else ("", [])
        text = found if config == "machine" else read_config(Path(config))
        recipe = recipe_for(data, plan, None, text, modules if only_loaded else None)
    for each in added_options(data, recipe):
        session.output.note(f"for this plan: {each}")
    return recipe


def _find_kernels(
    session: Session,
    data: DataFolder,
    names: list[tuple[str, bool]],
    modules: tuple[Path, Path] | None,
    recipe: Recipe | None,
) -> dict[Arm, GivenKernel]:
    """Return the kernels. `recipe` builds those that are not in files."""
    from ..ab.build import build_commit
    from ..ab.kernels import find_kernel

    found: dict[Arm, GivenKernel] = {}
    before = ""
    for number, (arm, (name, in_file)) in enumerate(zip(PAIR, names, strict=False)):
        if in_file or recipe is None:
            found[arm] = find_kernel(name, cache_folder(), modules[number] if modules else None)
        else:
            found[arm] = build_commit(data, name, recipe, cache_folder(), session.output.note, before)
            before = found[arm].commit
    return found


def _quick_plan(target: str, plan: str | None) -> str:
    from ..ab.quick import CHECKS

    if target != _EMULATOR or plan is not None:
        raise UsageError("--quick has plans of its own, in an emulator", "`wqlab ab qemu --quick HEAD`")
    return CHECKS[0].plan


def _check_quickly(
    session: Session, data: DataFolder, kernel: GivenKernel, topology: str, rootfs: Path | None
) -> NoReturn:
    from ..ab.quick import check

    raise typer.Exit(check(data, kernel, topology, cache=cache_folder(), root=rootfs, say=session.output.text))


def _wanted(  # noqa: PLR0917 - the options of the command
    session: Session,
    kernels: dict[Arm, GivenKernel],
    plan: str,
    blocks: int | None,
    scenarios: list[str] | None,
    settings: Sequence[str] | None,
    parameters: list[str] | None,
) -> Wanted:
    from ..ab.prepare import Wanted

    for arm, kernel in kernels.items():
        beside = f"modules in {kernel.modules}" if kernel.modules else "without modules"
        session.output.note(f"{arm.value}: {kernel.release}, build-id {kernel.build_id_gnu[:12]}, {beside}")
    return Wanted(
        plan=plan,
        kernels=kernels,
        blocks=blocks,
        scenarios=scenarios or [],
        settings=settings or [],
        parameters=dict(_parameter(each) for each in parameters or []),
    )


def _prepare_emulator(  # noqa: PLR0917 - the options of the command
    session: Session, folder: StateFolder, wanted: Wanted, topology: str, rootfs: Path | None, data: DataFolder
) -> None:
    from ..ab.prepare import prepare_emulator

    made = prepare_emulator(folder, data, wanted, topology, cache=cache_folder(), root=rootfs, say=session.output.note)
    session.output.note(
        f"{made.job.plan.name} on {topology}, {len(made.job.blocks)} blocks, emulated by {made.accelerator}; "
        f"the folder is {folder.path.name}"
    )


def _prepare_machine(  # noqa: PLR0917 - the options of the command
    session: Session,
    folder: StateFolder,
    wanted: Wanted,
    target: str,
    rootfs: Path | None,
    data: DataFolder,
    *,
    yes: bool,
) -> None:
    from ..ab.machine import look_at, prepare_machine, what_will_happen

    seen = look_at(target)
    made = prepare_machine(folder, data, wanted, seen, cache=cache_folder(), root=rootfs, say=session.output.note)
    for line in what_will_happen(seen, made.job.plan.name, len(made.job.blocks), wanted):
        session.output.note(line)
    if not yes:
        _confirm(f"Use {target} like this?", folder)


def _confirm(question: str, folder: StateFolder) -> None:
    """End the command unless the user agrees. Raises UsageError if nobody can be asked."""
    if not sys.stdin.isatty():
        raise UsageError(
            "cannot ask for confirmation: standard input is no terminal",
            f"to use the machine as described: `wqlab ab --resume {folder.path.name} --yes`",
        )
    if not typer.confirm(question, err=True):
        raise typer.Exit(0)


def _look_again(session: Session, folder: StateFolder, *, yes: bool) -> None:
    """Inspect the machine of a folder again, and ask for confirmation if it has new warnings, such as users."""
    from ..ab.machine import new_warnings
    from ..errors import LabUnavailable

    plan = folder.read_plan()
    if plan.machine is None:
        return
    try:
        new = new_warnings(plan.target, plan.machine)
    except LabUnavailable as error:
        session.output.note(f"{error}: a kernel under test may run there, or it is off")
        return
    for each in new:
        session.output.note(f"WARNING: {each}")
    if new and not yes:
        _confirm(f"Use {plan.target} nevertheless?", folder)
    accepted = plan.machine.model_copy(update={"warnings": [*plan.machine.warnings, *new]})
    folder.write_plan(plan.model_copy(update={"machine": accepted}))


def _measure(session: Session, folder: StateFolder) -> NoReturn:
    from ..ab.run import is_interrupted, measure_all

    report = measure_all(folder, cache_folder(), session.output.note)
    session.output.text((folder.path / "report.txt").read_text())
    if is_interrupted(report.submission.failure):
        session.output.note(f"go on with `wqlab ab --resume {folder.path.name}`")
        raise typer.Exit(DETACHED_EXIT)
    raise typer.Exit(report.submission.exit_code or 0)


def _parameter(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--parameter {one_line(text)}: no value", "write NAME=VALUE")
    return name, value


def cache_folder() -> Path:
    """Return the folder for files that later calls use again, such as the root filesystem and built kernels.

    It is $WQLAB_CACHE, else `wqlab` below $XDG_CACHE_HOME or ~/.cache.
    """
    base = os.environ.get("WQLAB_CACHE") or os.environ.get("XDG_CACHE_HOME")
    folder = Path(base) if base else Path.home() / ".cache"
    return folder if os.environ.get("WQLAB_CACHE") else folder / "wqlab"


def _need_worker() -> None:
    if find_spec("wqlab_worker") is None:
        raise UsageError("`wqlab ab` needs the package wqlab-worker", "install wqlab-client[ab]")


def register(app: typer.Typer) -> None:
    app.command("ab")(ab)
