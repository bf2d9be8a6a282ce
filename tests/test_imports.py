"""Imports follow the dependency directions of docs/architecture.md, and no modules import each other in a circle."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

ALLOWED: dict[str, set[str]] = {
    "contracts/wqlab_contracts": set(),
    "comparison/wqlab_comparison": {"wqlab_contracts"},
    "report/wqlab_report": {"wqlab_contracts", "wqlab_comparison"},
    "server/wqlab_server": {"wqlab_contracts", "wqlab_comparison", "wqlab_report"},
    "worker/wqlab_worker": {"wqlab_contracts", "wqlab_host", "wqlab_bench"},
    "worker/wqlab_bench": {"wqlab_contracts", "wqlab_host"},
    "worker/wqlab_host": {"wqlab_contracts"},
    "client/wqlab_client": {"wqlab_contracts", "wqlab_comparison", "wqlab_report", "wqlab_worker", "wqlab_bench"},
    "lab/wqlab_lab": {"wqlab_contracts"},
    "rehearsal/wqlab_rehearsal": {"wqlab_contracts", "wqlab_host", "wqlab_bench"},
}
PACKAGES = {Path(folder).name for folder in ALLOWED}
DOMAINS = {
    *("submissions", "builds", "lab", "runs", "comparisons", "reports", "plans", "series", "accounts", "retention"),
    *("intake", "outbox", "history", "bisections", "any_comparison"),
}


def imports(path: Path, package: Path) -> set[str]:
    """Return the absolute dotted names that a file imports; relative ones are resolved against `package`'s parent."""
    return imported_names(ast.walk(ast.parse(path.read_text(), str(path))), path, package)


def imported_names(nodes: Iterable[ast.AST], path: Path, package: Path) -> set[str]:
    """Return the absolute dotted names in the import statements among `nodes` of a file."""
    names: set[str] = set()
    location = list(path.relative_to(package.parent).with_suffix("").parts)
    for node in nodes:
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = location[: len(location) - node.level] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            names.add(module)
            names.update(f"{module}.{alias.name}" for alias in node.names)
    return names


def module_level_nodes(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Yield the statements that run when a module is imported, without those under `if TYPE_CHECKING`."""
    for node in body:
        yield node
        if isinstance(node, ast.If):
            checking = "TYPE_CHECKING" in ast.unparse(node.test)
            yield from module_level_nodes(node.orelse if checking else [*node.body, *node.orelse])
        elif isinstance(node, ast.Try):
            yield from module_level_nodes([*node.body, *node.orelse, *node.finalbody])
            for handler in node.handlers:
                yield from module_level_nodes(handler.body)
        elif isinstance(node, ast.With | ast.ClassDef):
            yield from module_level_nodes(node.body)


def import_graph(folder: str) -> dict[str, set[str]]:
    """Return module -> modules of the same package that it imports when it is itself imported.

    A package's __init__.py counts as imported only where it is named, not for each of its submodules.
    """
    package = ROOT / folder
    modules = {module_name(path, package): path for path in sources(folder)}
    graph = {}
    for name, path in modules.items():
        names = imported_names(module_level_nodes(ast.parse(path.read_text(), str(path)).body), path, package)
        # `from . import submodule` needs the submodule, not what the package's __init__.py defines.
        parents = {imported.rpartition(".")[0] for imported in names if imported in modules}
        graph[name] = {imported for imported in names if imported in modules} - parents - {name}
    return graph


def module_name(path: Path, package: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def find_circle(graph: dict[str, set[str]]) -> list[str]:
    """Return the modules of a circle of imports, the first one again at its end; empty if there is none."""
    finished: set[str] = set()

    def visit(name: str, path: list[str]) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name in finished:
            return []
        for imported in sorted(graph[name]):
            if circle := visit(imported, [*path, name]):
                return circle
        finished.add(name)
        return []

    for name in sorted(graph):
        if circle := visit(name, []):
            return circle
    return []


def sources(folder: str) -> list[Path]:
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files, f"{folder} has no Python files: update the table ALLOWED"
    return files


@pytest.mark.parametrize("folder", ALLOWED)
def test_packages_import_only_what_the_architecture_allows(folder: str) -> None:
    own = Path(folder).name
    for path in sources(folder):
        reached = {name.split(".")[0] for name in imports(path, ROOT / folder)} & PACKAGES - {own}
        assert reached <= ALLOWED[folder], f"{path.relative_to(ROOT)} imports {sorted(reached - ALLOWED[folder])}"


@pytest.mark.parametrize("folder", ALLOWED)
def test_modules_do_not_import_each_other_in_a_circle(folder: str) -> None:
    assert not (circle := find_circle(import_graph(folder))), " -> ".join(circle)


def test_a_circle_is_found_and_type_checking_imports_are_ignored(tmp_path: Path) -> None:
    assert find_circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    source = "import x\nif TYPE_CHECKING:\n    import y\nelse:\n    import z\ndef f():\n    import later\n"
    path = tmp_path / "module.py"
    assert imported_names(module_level_nodes(ast.parse(source).body), path, tmp_path) == {"x", "z"}


def test_only_the_backends_import_labgrid() -> None:
    for folder in ALLOWED:
        for path in sources(folder):
            if "backends" in path.parts:
                continue
            names = {name.split(".")[0] for name in imports(path, ROOT / folder)}
            assert "labgrid" not in names, f"{path.relative_to(ROOT)} imports labgrid"


def test_only_backends_that_start_an_emulator_import_the_bench() -> None:
    for path in sources("worker/wqlab_worker"):
        if path.parts[-2] in {"instrumented", "ab"}:
            continue
        names = {name.split(".")[0] for name in imports(path, ROOT / "worker/wqlab_worker")}
        assert "wqlab_bench" not in names, f"{path.relative_to(ROOT)} imports wqlab_bench"


WITHOUT_SERVER = {"apply", "backends", "build", "failures", "measure", "workspace"}
"""Folders and modules of the worker of which `wqlab ab` may use modules."""


def test_only_ab_of_the_client_imports_the_worker() -> None:
    for path in sources("client/wqlab_client"):
        reached = {name for name in imports(path, ROOT / "client/wqlab_client") if name.startswith("wqlab_")}
        of_worker = {name for name in reached if name.split(".")[0] in {"wqlab_worker", "wqlab_bench"}}
        if "ab" not in path.relative_to(ROOT / "client/wqlab_client").parts[:-1]:
            assert not of_worker, f"{path.relative_to(ROOT)} imports {sorted(of_worker)}"
        folders = {name.split(".")[1] for name in of_worker if name.startswith("wqlab_worker.")}
        assert folders <= WITHOUT_SERVER, f"{path.relative_to(ROOT)} imports {sorted(folders - WITHOUT_SERVER)}"


def test_ab_loads_neither_labgrid_nor_what_talks_to_a_server() -> None:
    unwanted = ["labgrid", "celery", "wqlab_worker.claims", "wqlab_worker.settings", "wqlab_worker.tasks"]
    program = f"import sys, wqlab_client.ab.run; sys.exit(' '.join(set({unwanted}) & set(sys.modules)) or 0)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"wqlab_client.ab.run imports {done.stderr}"


FLOORS: list[set[str]] = [
    {"models", "oidc_settings", "wait"},
    {"settings", "storage"},
    {"estimates", "http", "migrations", "orders"},
    {"jobs", "views"},
    DOMAINS,
    {"public_api", "sources", "pipeline", "worker_api"},
    {"app", "tick"},
    {"cli", "tasks"},
]
"""Folders and modules of the server, the ground floor first. Each imports only what is below it, so that no domain
reaches another one, directly or through a shared folder."""


def test_server_imports_only_what_is_below() -> None:
    folder, floor_of = "server/wqlab_server", {name: number for number, floor in enumerate(FLOORS) for name in floor}
    seen = set()
    for path in sources(folder):
        own = Path(path.relative_to(ROOT / folder).parts[0]).stem
        seen.add(own)
        reached = {name.split(".")[1] for name in imports(path, ROOT / folder) if name.startswith("wqlab_server.")}
        upwards = {name for name in reached - {own} if floor_of.get(name, 0) >= floor_of.get(own, len(FLOORS))}
        assert not upwards, f"{path.relative_to(ROOT)} imports {sorted(upwards)}"
    assert seen == floor_of.keys() | {"__init__"}


@pytest.mark.parametrize(
    "module",
    [
        "server/wqlab_server/jobs/state.py",
        "server/wqlab_server/lab/allocate.py",
        "server/wqlab_server/lab/health.py",
        "server/wqlab_server/outbox/schedule.py",
        "server/wqlab_server/outbox/state.py",
        "server/wqlab_server/runs/state.py",
        "server/wqlab_server/submissions/state.py",
        "comparison/wqlab_comparison",
        "report/wqlab_report",
    ],
)
def test_pure_modules_touch_no_session_clock_or_network(module: str) -> None:
    path = ROOT / module
    package = ROOT / "/".join(module.split("/")[:2])
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    for file in files:
        reached = {name.split(".")[0] for name in imports(file, package)}
        assert not reached & {"sqlalchemy", "httpx", "time", "socket", "celery", "fastapi"}, file


def test_commands_start_without_numpy() -> None:
    """It takes a second to import; the commands that compute import it themselves, and `ab` the worker."""
    slow = ["numpy", "scipy", "wqlab_worker"]
    program = f"import sys, wqlab_client.cli.ab; sys.exit(' '.join(set({slow}) & set(sys.modules)) or 0)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"wqlab_client.cli imports {done.stderr}"


def test_server_starts_without_scipy_stats() -> None:
    """The module takes longer to import than the server's own code; scipy.special has the same distributions."""
    program = "import sys, wqlab_server.app; sys.exit('scipy.stats' in sys.modules and 'scipy.stats')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"wqlab_server.app imports {done.stderr}"
