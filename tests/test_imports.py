"""The dependency direction of docs/architecture.md, read from the imports themselves."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

ALLOWED: dict[str, set[str]] = {
    "contracts/wqlab_contracts": set(),
    "comparison/wqlab_comparison": {"wqlab_contracts"},
    "server/wqlab_server": {"wqlab_contracts", "wqlab_comparison"},
    "worker/wqlab_worker": {"wqlab_contracts", "wqlab_host"},
    "worker/wqlab_bench": {"wqlab_contracts", "wqlab_host"},
    "worker/wqlab_host": {"wqlab_contracts"},
    "client/wqlab_client": {"wqlab_contracts", "wqlab_comparison"},
    "lab/wqlab_lab": set(),
}
PACKAGES = {Path(folder).name for folder in ALLOWED}
DOMAINS = {"submissions", "builds", "lab", "runs", "comparisons", "reports", "plans", "series", "accounts"}


def imports(path: Path, package: Path) -> set[str]:
    """Absolute dotted names that a file imports; relative ones are resolved against `package`'s parent."""
    found: set[str] = set()
    here = list(path.relative_to(package.parent).with_suffix("").parts)
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            found.add(module)
            found.update(f"{module}.{alias.name}" for alias in node.names)
    return found


def sources(folder: str) -> list[Path]:
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files, f"{folder} has no Python files: is the table above still true?"
    return files


@pytest.mark.parametrize("folder", ALLOWED)
def test_packages_import_only_what_the_architecture_allows(folder: str) -> None:
    own = Path(folder).name
    for path in sources(folder):
        reached = {name.split(".")[0] for name in imports(path, ROOT / folder)} & PACKAGES - {own}
        assert reached <= ALLOWED[folder], f"{path.relative_to(ROOT)} imports {sorted(reached - ALLOWED[folder])}"


def test_only_the_backends_know_labgrid() -> None:
    for folder in ALLOWED:
        for path in sources(folder):
            if "backends" in path.parts:
                continue
            names = {name.split(".")[0] for name in imports(path, ROOT / folder)}
            assert "labgrid" not in names, f"{path.relative_to(ROOT)} imports labgrid"


def test_server_domains_do_not_import_each_other() -> None:
    folder = "server/wqlab_server"
    for path in sources(folder):
        domain = path.relative_to(ROOT / folder).parts[0]
        if domain not in DOMAINS:
            continue
        for name in imports(path, ROOT / folder):
            parts = name.split(".")
            if parts[0] == "wqlab_server" and len(parts) > 1 and parts[1] in DOMAINS - {domain}:
                pytest.fail(f"{path.relative_to(ROOT)} imports {name}")


SHARED_ROOMS = {"estimates", "http", "jobs", "models", "storage", "views"}
"""Rooms of the server that its domains use."""
COMPOSE = {"app", "cli", "pipeline", "public_api", "tasks", "worker_api"}
"""What sees several domains: the order of steps, and the places that mount or start everything."""


def test_every_server_room_is_a_domain_a_shared_room_or_composes_them() -> None:
    rooms = {
        Path(path.relative_to(ROOT / "server/wqlab_server").parts[0]).stem for path in sources("server/wqlab_server")
    }
    assert rooms == DOMAINS | SHARED_ROOMS | COMPOSE | {"__init__", "migrations", "settings"}


def test_shared_server_rooms_do_not_import_domains() -> None:
    """Otherwise a domain could reach another one through a shared room."""
    package = ROOT / "server/wqlab_server"
    for path in sources("server/wqlab_server"):
        if path.relative_to(package).parts[0] in SHARED_ROOMS:
            reached = {name.split(".")[1] for name in imports(path, package) if name.startswith("wqlab_server.")}
            assert not reached & (DOMAINS | COMPOSE), f"{path.name} imports {sorted(reached & (DOMAINS | COMPOSE))}"


@pytest.mark.parametrize(
    "module",
    [
        "server/wqlab_server/jobs/state.py",
        "server/wqlab_server/lab/allocate.py",
        "server/wqlab_server/lab/health.py",
        "server/wqlab_server/runs/state.py",
        "server/wqlab_server/submissions/state.py",
        "comparison/wqlab_comparison",
    ],
)
def test_pure_modules_touch_no_session_clock_or_network(module: str) -> None:
    path = ROOT / module
    package = ROOT / "/".join(module.split("/")[:2])
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    for file in files:
        reached = {name.split(".")[0] for name in imports(file, package)}
        assert not reached & {"sqlalchemy", "httpx", "time", "socket", "celery", "fastapi"}, file
