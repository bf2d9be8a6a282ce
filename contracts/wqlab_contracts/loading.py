"""Read and validate the data folder: device types, kernel trees and recipes, test plans, mail archives, watches.

    device-types/<type>.yaml       one device type; the file name without .yaml is its name
    device-types/common.yaml       defaults under every type (optional)
    device-types/costs/<profile>.yaml  costs of modelled devices (optional)
    device-types/addresses.env     values for ${NAME:-default} in device types (optional)
    device-types/lava/<boot>.yaml.jinja2   definition of a LAVA job, for types with `lava: {boot: <boot>}`
    kernels/trees.yaml             `default:` and the list `trees:`
    kernels/recipes/<recipe>.yaml
    kernels/fragments/<name>.config
    kernels/modules/<name>/        source of a kernel module, with a Kbuild that makes <name>.ko (optional)
    kernels/modules/common/        headers that each module gets beside its own files (optional)
    testplans/<plan>/plan.yaml     next to the files sent to the device; `files_of:` adds those of another plan, and
                                   values of its metrics
    testplans/common/              files sent to the device with every plan (optional); no plan's own has such a name
    testplans/validation.yaml      the list `validations:` of plans that cost profiles are validated for (optional)
    testplans/touches.yaml         the table `touches:` of plans that are proposed for files and functions (optional)
    intake/archives.yaml           the list `archives:` of mail archives, in the order to ask them (optional)
    intake/forges.yaml             the list `forges:` of repositories on forges (optional)
    intake/watches/<watch>.yaml    a mailing list whose series, or a tree whose new heads are measured (optional)

`load_data` reads everything or raises one `DataError` with every problem found, each with file, line and key.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from . import references
from .addresses_file import read_addresses, read_device_type
from .archives_file import read_archives
from .data_folder import DataFolder
from .forges_file import read_forges
from .fragments import fragment_problems
from .hardware_conditions import with_hardware_conditions
from .plan_file import PLAN_FILE, read_plan
from .specs import (
    Archive,
    DeviceType,
    Forge,
    KernelRecipe,
    ListWatch,
    Name,
    Strict,
    TestPlan,
    Tree,
    TreeWatch,
)
from .specs.cost_profile import CostProfile
from .touches_file import notes as touches_notes
from .touches_file import read_touches
from .touches_file import reference_problems as touches_problems
from .validation_file import read_validations
from .watch_file import reference_problems as watch_problems
from .watch_file import watch_of
from .yamlfile import DataError, Document, Location, Problem, suggest_name

__all__ = ["DataError", "DataFolder", "Problem", "load_data"]

COMMON = "common"
"""Name of the defaults file of device types, and of the folder of files shared by all plans."""

COSTS = "device-types/costs"
"""Folder of the cost profiles' files."""

NOISE_CONTROL = "kernels/controls/nops.mbox"
"""Series whose kernel differs from its baseline by nops only."""

WATCHES = "intake/watches"
"""Folder of the watches' files."""

README = "README.md"
"""Documentation of a plan; not among the files that `files_of` takes from another plan."""

M = TypeVar("M", bound=BaseModel)


class _Trees(Strict):
    default: Name
    """Tree of submissions that name none."""
    golden: Name | None = None
    """Tree of the golden kernel; None: the default."""
    trees: list[Tree]


def load_data(data_dir: Path) -> DataFolder:
    """Read and validate the data folder. Raises DataError with all problems in it."""
    reader = _Reader(data_dir.resolve())
    folder = reader.read()
    if reader.problems or folder is None:
        raise DataError(reader.problems)
    return folder


@dataclass
class _Loaded:
    """All documents of one kind by name, valid or not."""

    documents: dict[str, Document] = field(default_factory=dict)

    @property
    def names(self) -> set[str]:
        return set(self.documents)


class _Reader:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.problems: list[Problem] = []

    def read(self) -> DataFolder | None:
        if not self.root.is_dir():
            self.problems.append(Problem(str(self.root), 0, "", "no such data folder"))
            return None
        fragments = self._fragments()
        recipe_documents, recipes = self._load("kernels/recipes", self._stems("kernels/recipes"), KernelRecipe)
        plan_documents, plans = self._load("testplans", self._plan_folders(), TestPlan, read=read_plan)
        common = self._common_device_type()
        type_documents, device_types = self._load(
            "device-types", self._stems("device-types", but=COMMON), DeviceType, common, self._addresses()
        )
        costs = self._costs()
        default_tree, golden_tree, trees = self._trees()
        files = self._plan_files(plan_documents.names, plans)
        modules = self._modules()
        lava_templates = self._lava_templates()
        names = (recipe_documents.names, plan_documents.names)
        self.problems += [
            *references.recipe_problems(recipe_documents.documents, recipes, fragments, modules),
            *references.plan_problems(plan_documents.documents, plans, files, fragments),
            *references.device_type_problems(type_documents.documents, device_types, *names, plans),
            *references.cost_profile_problems(type_documents.documents, device_types, costs),
            *references.lava_problems(type_documents.documents, device_types, lava_templates),
        ]
        generated_lab = _generated_lab(device_types)
        plain_common = {} if common is None else common.plain()
        if common is not None and generated_lab is not None:
            self.problems += references.generated_type_problems(common, plain_common, generated_lab, *names)
        watch_documents, watches = self._watches()
        touches_document, touches = read_touches(self.root)
        self.problems += read_validations(self.root, plans)[1]
        folder = DataFolder(
            self.root,
            device_types,
            trees,
            default_tree,
            recipes,
            plans,
            fragments,
            modules,
            lava_templates,
            files,
            golden_tree,
            self._noise_control(),
            generated_lab,
            plain_common,
            self._archives(),
            self._forges(set(trees)),
            watches,
            touches,
            costs,
        )
        self._check_watches(watch_documents, folder)
        if touches_document is not None:
            self.problems += [*touches_document.problems, *touches_problems(touches_document, folder)]
        return folder

    # --- reading ------------------------------------------------------------------------------------------------

    def _stems(self, folder: str, but: str = "") -> dict[str, Path]:
        paths = sorted((self.root / folder).glob("*.yaml"))
        if not paths:
            self.problems.append(Problem(folder, 0, "", "no *.yaml file in this folder"))
        return {path.stem: path for path in paths if path.stem != but}

    def _plan_folders(self) -> dict[str, Path]:
        found = {path.parent.name: path for path in sorted((self.root / "testplans").glob(f"*/{PLAN_FILE}"))}
        if not found:
            self.problems.append(Problem("testplans", 0, "", "no <plan>/plan.yaml in this folder"))
        return found

    def _load(
        self,
        folder: str,
        paths: Mapping[str, Path],
        model: type[M],
        defaults: Document | None = None,
        addresses: Mapping[str, str] | None = None,
        *,
        read: Callable[[Path, str], Document] = Document.read,
    ) -> tuple[_Loaded, dict[str, M]]:
        """Read and validate the files in `paths`. Return all documents, and the models of the valid ones, by name.

        With `addresses`, they are device types.
        """
        loaded, models = _Loaded(), {}
        for name, path in paths.items():
            file = str(path.relative_to(self.root))
            document = read(path, file) if addresses is None else read_device_type(path, file, addresses)
            if defaults is not None:
                document = document.over(defaults)
            if addresses is not None:
                document = with_hardware_conditions(document)
            loaded.documents[name] = document
            value = document.validate_as(model)
            self.problems.extend(document.problems)
            if value is None:
                continue
            self._check_name(document, getattr(value, "name", name), folder, name)
            models[name] = value
        return loaded, models

    def _addresses(self) -> dict[str, str]:
        addresses, problems = read_addresses(self.root / "device-types")
        self.problems.extend(problems)
        return addresses

    def _common_device_type(self) -> Document | None:
        path = self.root / "device-types" / f"{COMMON}.yaml"
        if not path.exists():
            return None
        document = Document.read(path, str(path.relative_to(self.root)))
        self.problems.extend(document.problems)
        return None if document.problems else document

    def _costs(self) -> dict[str, CostProfile]:
        paths = {path.stem: path for path in sorted((self.root / COSTS).glob("*.yaml"))}
        return self._load(COSTS, paths, CostProfile)[1]

    def _trees(self) -> tuple[str, str, dict[str, Tree]]:
        document = Document.read(self.root / "kernels" / "trees.yaml", "kernels/trees.yaml")
        value = document.validate_as(_Trees)
        self.problems.extend(document.problems)
        if value is None:
            return "", "", {}
        trees: dict[str, Tree] = {}
        for index, tree in enumerate(value.trees):
            if tree.name in trees:
                self._add(document, ("trees", index, "name"), f"{tree.name} is defined twice")
            trees[tree.name] = tree
        golden = value.golden or value.default
        for key, name in (("default", value.default), ("golden", golden)):
            if name not in trees and (key == "default" or value.golden):
                self._add(document, (key,), f"no tree {name!r}; {suggest_name(name, trees)}")
        return value.default, golden, trees

    def _archives(self) -> tuple[Archive, ...]:
        archives, problems = read_archives(self.root)
        self.problems += problems
        return archives

    def _forges(self, trees: set[str]) -> tuple[Forge, ...]:
        forges, problems = read_forges(self.root, trees)
        self.problems.extend(problems)
        return forges

    def _watches(self) -> tuple[dict[str, Document], dict[str, ListWatch | TreeWatch]]:
        documents, watches = {}, {}
        for path in sorted((self.root / WATCHES).glob("*.yaml")):
            document = documents[path.stem] = Document.read(path, f"{WATCHES}/{path.name}")
            watch = watch_of(document)
            self.problems.extend(document.problems)
            if watch is not None:
                self._check_name(document, watch.name, WATCHES, path.stem)
                watches[path.stem] = watch
        return documents, watches

    def _check_watches(self, documents: Mapping[str, Document], folder: DataFolder) -> None:
        for name, watch in folder.watches.items():
            for location, message in watch_problems(watch, folder):
                self._add(documents[name], location, message)

    def _fragments(self) -> dict[str, str]:
        fragments: dict[str, str] = {}
        for path in sorted((self.root / "kernels" / "fragments").glob("*.config")):
            file = str(path.relative_to(self.root))
            text = self._text(path)
            if text is not None:
                fragments[path.stem] = text
                self.problems.extend(fragment_problems(file, text))
        return fragments

    def _modules(self) -> dict[str, dict[str, str]]:
        modules: dict[str, dict[str, str]] = {}
        root = self.root / "kernels" / "modules"
        shared = self._files_under(root / COMMON)
        for folder in sorted(root.glob("*/")):
            if folder.name == COMMON:
                continue
            files = shared | self._files_under(folder)
            if f"{folder.name}.o" not in files.get("Kbuild", ""):
                where = f"kernels/modules/{folder.name}/Kbuild"
                self.problems.append(Problem(where, 0, "", f"the file must exist and contain obj-m := {folder.name}.o"))
            modules[folder.name] = files
        return modules

    def _noise_control(self) -> str:
        path = self.root / NOISE_CONTROL
        return (self._text(path) or "") if path.exists() else ""

    def _lava_templates(self) -> dict[str, str]:
        paths = sorted((self.root / "device-types" / "lava").glob(f"*{references.LAVA_TEMPLATE}"))
        texts = {path.name.removesuffix(references.LAVA_TEMPLATE): self._text(path) for path in paths}
        return {name: text for name, text in texts.items() if text is not None}

    def _plan_files(self, names: set[str], plans: Mapping[str, TestPlan]) -> dict[str, dict[str, str]]:
        shared = self._files_under(self.root / "testplans" / COMMON)
        own = {name: self._files_under(self.root / "testplans" / name) for name in names}
        for name in sorted(names):
            for file in sorted(own[name].keys() & shared.keys()):
                detail = f"would replace testplans/{COMMON}/{file}, which each plan gets; rename the plan's file"
                self.problems.append(Problem(f"testplans/{name}/{file}", 0, "", detail))

        def borrowed(name: str) -> dict[str, str]:
            lender = plans[name].files_of if name in plans else None
            return {file: text for file, text in own.get(lender or "", {}).items() if file != README}

        return {name: shared | borrowed(name) | own[name] for name in names}

    def _files_under(self, folder: Path) -> dict[str, str]:
        texts: dict[str, str] = {}
        for path in sorted(folder.rglob("*")) if folder.is_dir() else []:
            name = path.relative_to(folder)
            hidden = any(part.startswith((".", "__")) for part in name.parts)
            if path.is_file() and not hidden and str(name) != PLAN_FILE:
                text = self._text(path)
                if text is not None:
                    texts[str(name)] = text
        return texts

    def _text(self, path: Path) -> str | None:
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            self.problems.append(Problem(str(path.relative_to(self.root)), 0, "", f"cannot be read as text: {error}"))
            return None

    def _check_name(self, document: Document, name: str, folder: str, stem: str) -> None:
        if name != stem:
            self._add(document, ("name",), f"is {name!r}, but the {folder} file is called {stem!r}; make them equal")

    def _add(self, document: Document, location: Location, message: str) -> None:
        self.problems.append(document.problem(location, message))


def _generated_lab(device_types: Mapping[str, DeviceType]) -> str | None:
    """Return the lab of the first instrumented x86-64 type, whose worker can run any such device; None without one."""
    return next(
        (each.units[0].lab for _, each in sorted(device_types.items()) if each.instrumented and each.arch == "x86_64"),
        None,
    )


def main() -> None:
    """Check a data folder: `python -m wqlab_contracts.loading FOLDER`.

    Prints the problems, one per line, and exits with status 1 if there are any.
    """
    try:
        folder = load_data(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
    except DataError as error:
        sys.exit(str(error))
    counts = (len(folder.device_types), len(folder.trees), len(folder.recipes), len(folder.plans))
    print("{} device types, {} trees, {} recipes, {} plans".format(*counts))
    for note in touches_notes(folder):
        print(f"note: {note}")


if __name__ == "__main__":
    main()
