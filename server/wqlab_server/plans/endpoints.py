"""Endpoints for plans with their scripts, kernel trees and recipes."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from wqlab_contracts.api.plans import PlanView, TreeView
from wqlab_contracts.loading import DataFolder
from wqlab_contracts.specs import KernelRecipe, TestPlan, Tree

from ..http.auth import Reader
from ..http.deps import Data, Db
from ..http.problems import documented
from . import queries

router = APIRouter(tags=["plans"], responses=documented(401, 403, 422, 429))


@router.get("/plans")
def list_plans(
    data: Data,
    _: Reader,
    name: Annotated[str | None, Query(description="Only this plan")] = None,
    files: Annotated[
        bool, Query(description="With `script`, `files` and `readme`, which are empty otherwise: they are large")
    ] = False,
) -> list[PlanView]:
    """List all plans, or the one of a name; an unknown name gives an empty list."""
    folder = data.current()
    return [
        _plan_view(folder, plan) if files else PlanView(plan=plan)
        for plan in folder.plans.values()
        if name in {None, plan.name}
    ]


@router.get("/trees")
def list_trees(data: Data, session: Db, _: Reader) -> list[TreeView]:
    """List all kernel trees, each with the commit that its branch last resolved to."""
    heads = queries.heads(session)
    folder = data.current()
    return [_tree_view(tree, heads.get(name), name == folder.default_tree) for name, tree in folder.trees.items()]


@router.get("/recipes")
def list_recipes(data: Data, _: Reader) -> list[KernelRecipe]:
    """List all recipes: how kernels are configured and built."""
    return list(data.current().recipes.values())


def _tree_view(tree: Tree, head: queries.Head | None, default: bool) -> TreeView:
    return TreeView(
        tree=tree,
        base_commit=head.commit if head else None,
        release=head.release if head else None,
        resolved_at=head.resolved_at if head else None,
        failure=head.failure if head else None,
        default=default,
    )


def _plan_view(folder: DataFolder, plan: TestPlan) -> PlanView:
    files = folder.plan_files(plan.name)
    script, readme = files.pop(plan.script), files.pop("README.md", "")
    return PlanView(plan=plan, script=script, files=files, readme=readme)
