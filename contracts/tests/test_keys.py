"""What makes two builds the same build, and what does not."""

import pytest

from wqlab_contracts.keys import build_key, fragment_names, in_merge_order
from wqlab_contracts.specs import KernelRecipe

RECIPE = KernelRecipe(
    name="measure",
    summary="x",
    fragments=["workloads", "base"],
    arch_fragments={"x86_64": ["x86_64"]},
    emulated_fragments=["emulated"],
)
FRAGMENTS = {"workloads": "A", "base": "B", "x86_64": "C", "emulated": "D"}
KEY = build_key("1" * 40, RECIPE, "x86_64", FRAGMENTS, "gcc 12")


def test_the_key_is_pinned() -> None:
    """Another key for the same content makes every cached kernel of every lab useless: never by accident."""
    assert KEY == "ed043f403c0b590141d3bd3cf56969509277322ea417575d3f02e17e993c84a1"


def test_the_key_survives_a_store_that_reorders_mappings() -> None:
    assert build_key("1" * 40, RECIPE, "x86_64", dict(sorted(FRAGMENTS.items())), "gcc 12") == KEY
    assert build_key("1" * 40, RECIPE, "x86_64", dict(reversed(FRAGMENTS.items())), "gcc 12") == KEY


def test_merge_order_is_the_recipes() -> None:
    names = [name for name, _ in in_merge_order(RECIPE, "x86_64", dict(sorted(FRAGMENTS.items())))]
    assert names == fragment_names(RECIPE, "x86_64", True) == ["workloads", "base", "x86_64", "emulated"]
    hardware = {name: text for name, text in FRAGMENTS.items() if name != "emulated"}
    assert [name for name, _ in in_merge_order(RECIPE, "x86_64", hardware)] == fragment_names(RECIPE, "x86_64", False)


def test_prose_does_not_count() -> None:
    renamed = RECIPE.model_copy(update={"name": "other", "summary": "y", "figures": False})
    assert build_key("1" * 40, renamed, "x86_64", FRAGMENTS, "gcc 12") == KEY


def test_everything_else_counts() -> None:
    swapped = RECIPE.model_copy(update={"fragments": ["base", "workloads"]})
    allno = RECIPE.model_copy(update={"base_config": "allnoconfig"})
    without = {name: text for name, text in FRAGMENTS.items() if name != "emulated"}
    others = {
        build_key("2" * 40, RECIPE, "x86_64", FRAGMENTS, "gcc 12"),
        build_key("1" * 40, swapped, "x86_64", FRAGMENTS, "gcc 12"),
        build_key("1" * 40, allno, "x86_64", FRAGMENTS, "gcc 12"),
        build_key("1" * 40, RECIPE, "x86_64", without, "gcc 12"),
        build_key("1" * 40, RECIPE, "x86_64", FRAGMENTS | {"base": "B2"}, "gcc 12"),
        build_key("1" * 40, RECIPE, "x86_64", FRAGMENTS, "gcc 13"),
    }
    assert len(others | {KEY}) == 7


def test_a_module_counts_by_its_text() -> None:
    recipe = RECIPE.model_copy(update={"modules": ["load", "probe"]})
    modules = {"load": {"Kbuild": "obj-m := load.o", "load.c": "1"}, "probe": {"Kbuild": "obj-m := probe.o"}}
    edited = modules | {"load": modules["load"] | {"load.c": "2"}}

    def key(modules: dict[str, dict[str, str]]) -> str:
        return build_key("1" * 40, recipe, "x86_64", FRAGMENTS, "gcc 12", modules)

    assert key(dict(reversed(modules.items()))) == key(modules) != key(edited) != KEY


def test_modules_that_are_not_the_recipes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"recipe measure has modules \[\], not \['load'\]"):
        build_key("1" * 40, RECIPE, "x86_64", FRAGMENTS, "gcc 12", {"load": {}})
