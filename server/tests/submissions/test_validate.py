"""Validation of submission requests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from wqlab_contracts.api.submissions import SubmissionRequest
from wqlab_contracts.loading import DataFolder
from wqlab_contracts.specs import DeviceType, KernelRecipe, TestPlan, Tree
from wqlab_server.submissions.validate import mistakes

PLAN = TestPlan.model_validate(
    {
        "name": "dm-crypt",
        "summary": "s",
        "script": "run.sh",
        "parser": "fio",
        "scenarios": [{"name": "high", "summary": "s", "parameters": {"size": 8}}],
        "axes": [{"name": "scope", "values": ["system", "cache"]}, {"name": "strict", "values": ["0", "1"]}],
        "reference_setting": "scope=system,strict=0",
        "hardware": {
            "settings": ["scope=system,strict=0", "scope=cache,strict=0"],
            "parameters": {"block": "32k", "jobs": 8, "share": 0.5},
        },
        "emulated": {"settings": ["scope=system,strict=0", "scope=cache,strict=0"]},
        "metrics": [],
    }
)
FLAT = TestPlan.model_validate(
    {
        "name": "xfs",
        "summary": "s",
        "script": "run.sh",
        "parser": "fio",
        "scenarios": [{"name": "fsync", "summary": "s"}],
        "reference_setting": "",
        "hardware": {"settings": [""]},
        "emulated": {"settings": [""]},
        "metrics": [],
    }
)
DEVICE = DeviceType.model_validate(
    {
        "name": "tiny",
        "summary": "s",
        "arch": "x86_64",
        "topology": {"sockets": 1, "l3_per_socket": 1, "cores_per_l3": 2, "threads_per_core": 1},
        "emulation": {"memory_mib": 512},
        "units": [{"name": "tiny-1"}],
    }
)
CLANG_DEVICE = DEVICE.model_copy(update={"name": "other", "recipe": "clang"})
DATA = DataFolder(
    Path("/nowhere"),
    {"tiny": DEVICE, "other": CLANG_DEVICE},
    {"stable": Tree(name="stable", summary="s", url="https://example.org/linux.git")},
    "stable",
    {
        "measure": KernelRecipe(name="measure", summary="s", fragments=["base"]),
        "clang": KernelRecipe(name="clang", summary="s", fragments=["base"], toolchain="clang"),
    },
    {"dm-crypt": PLAN, "xfs": FLAT},
    {},
    {},
    {},
    {},
)
MBOX = "From 0123 Mon Sep 17 00:00:00 2001\nSubject: [PATCH] x\n\ndiff --git a/a b/a\n--- a/a\n+++ b/a\n"


def found(series: Any = None, tree: str = "stable", recipe: str | None = None, **target: Any) -> dict[str, str]:
    target = {"plan": "dm-crypt", "device_type": "tiny"} | target
    request = SubmissionRequest.model_validate({"series": series, "tree": tree, "recipe": recipe, "targets": [target]})
    return {each["pointer"]: each["detail"] for each in mistakes(request, DATA, ["/srv/git/linux"])}


@pytest.mark.parametrize(
    "series",
    [
        None,
        {"mbox": {"text": MBOX}},
        {"mbox": {"text": "Subject: x\n\n--- linux.orig/a\t2026-01-01\n+++ linux/a\t2026-01-02\n@@ -1 +0,0 @@\n-a\n"}},
        {"git": {"url": "https://example.org/linux.git", "ref": "wq/faster-flush"}},
        {"git": {"url": "git://example.org/linux", "ref": "v6.12", "base": "0123456789ab"}},
        {"git": {"url": "/srv/git/linux/", "ref": "HEAD"}},
    ],
)
def test_valid_request_has_no_mistakes(series: Any) -> None:
    assert found(series) == {}


def test_a_whole_number_is_text_too() -> None:
    """`disk_nodes=1` on the command line, of a parameter whose default is `any`."""
    for value in (4, "", "1/1", "node:1", "0-3,8", "crc32c", "0.1", "/sys/kernel/x_y"):
        assert found(parameters={"block": value}) == {}


@pytest.mark.parametrize(
    ("request_part", "pointer", "words"),
    [
        ({"tree": "stabel"}, "/tree", "did you mean stable?"),
        ({"recipe": "mesure"}, "/recipe", "did you mean measure?"),
        ({"plan": "dmcrypt"}, "/targets/0/plan", "did you mean dm-crypt?"),
        ({"plan": "zzz"}, "/targets/0/plan", "there are: dm-crypt, xfs"),
        ({"device_type": "tinny"}, "/targets/0/device_type", "did you mean tiny?"),
        ({"settings": []}, "/targets/0/settings", "leave the list out"),
        ({"settings": ["scope=cash,strict=0"]}, "/targets/0/settings/0", "did you mean 'scope=cache,strict=0'?"),
        ({"settings": ["strict=0,scope=cache"]}, "/targets/0/settings/0", "write 'scope=cache,strict=0'"),
        ({"settings": ["fast"]}, "/targets/0/settings/0", "for example 'scope=system,strict=0'"),
        ({"settings": ["scope=cache,strict=0"]}, "/targets/0/settings", "add it to the list"),
        ({"settings": ["scope=system,strict=0"]}, "/targets/0/settings", "add a setting to compare"),
        ({"settings": ["scope=system,strict=0"] * 2}, "/targets/0/settings/1", "listed twice"),
        ({"plan": "xfs"}, "/targets/0/plan", "give a series"),
        ({"parameters": {"job": 3}}, "/targets/0/parameters/job", "did you mean jobs?"),
        ({"parameters": {"jobs": "many"}}, "/targets/0/parameters/jobs", "takes a number, such as 8"),
        ({"parameters": {"jobs": float("inf")}}, "/targets/0/parameters/jobs", "finite"),
        ({"parameters": {"jobs": -1}}, "/targets/0/parameters/jobs", "from 0 to"),
        ({"parameters": {"share": -0.5}}, "/targets/0/parameters/share", "from 0 to"),
        ({"parameters": {"jobs": 10**30}}, "/targets/0/parameters/jobs", "from 0 to 2147483647"),
        ({"parameters": {"jobs": 4.5}}, "/targets/0/parameters/jobs", "takes a whole number, such as 8, not 4.5"),
        ({"parameters": {"block": 4.5}}, "/targets/0/parameters/block", "takes text, such as '32k', not 4.5"),
        ({"parameters": {"block": -4}}, "/targets/0/parameters/block", "takes text, such as '32k', not -4"),
        ({"parameters": {"size": 4}}, "/targets/0/parameters/size", "set by scenario high"),
        ({"parameters": {"block": "4k\n"}}, "/targets/0/parameters/block", "letters, digits"),
        ({"parameters": {"block": "4k --filename=/dev/sda"}}, "/targets/0/parameters/block", "letters, digits"),
        ({"parameters": {"block": "a[$(id)]"}}, "/targets/0/parameters/block", "letters, digits"),
        ({"parameters": {"block": "`id`"}}, "/targets/0/parameters/block", "letters, digits"),
        ({"parameters": {"block": "4k;id"}}, "/targets/0/parameters/block", "letters, digits"),
        ({"parameters": {"block": "'"}}, "/targets/0/parameters/block", "letters, digits"),
        ({"parameters": {"block": "4\u00e9"}}, "/targets/0/parameters/block", "letters, digits"),
        ({"parameters": {"block": "k" * 201}}, "/targets/0/parameters/block", "letters, digits"),
        ({"series": {}}, "/series", "one of git"),
        ({"series": {"mbox": {"text": " "}}}, "/series/mbox/text", "empty"),
        ({"series": {"mbox": {"text": "hello"}}}, "/series/mbox/text", "git format-patch"),
        ({"series": {"mbox": {"text": "Subject: cover\n\nhi"}}}, "/series/mbox/text", "contains a diff"),
        (
            {"series": {"mbox": {"text": MBOX.replace("Subject: ", "Subject: \x01")}}},
            "/series/mbox/text",
            "control character U+0001",
        ),
        ({"series": {"git": {"url": "ssh://example.org/x", "ref": "a"}}}, "/series/git/url", "https://"),
        ({"series": {"git": {"url": "https://me:pw@example.org/x", "ref": "a"}}}, "/series/git/url", "credentials"),
        ({"series": {"git": {"url": "/etc", "ref": "a"}}}, "/series/git/url", "/srv/git/linux"),
        ({"series": {"git": {"url": "https://[x/", "ref": "a"}}}, "/series/git/url", "not a URL"),
        ({"series": {"git": {"url": "https://e.org/x", "ref": "--upload-pack=x"}}}, "/series/git/ref", "not a branch"),
        ({"series": {"git": {"url": "https://e.org/x", "ref": "a..b"}}}, "/series/git/ref", "not a branch"),
        ({"series": {"git": {"url": "https://e.org/x", "ref": "a", "base": "-x"}}}, "/series/git/base", "merge base"),
    ],
)
def test_each_mistake_has_pointer_and_detail(request_part: dict[str, Any], pointer: str, words: str) -> None:
    mistake = found(**request_part)
    assert list(mistake) == [pointer]
    assert words in mistake[pointer]


def test_all_mistakes_are_reported_at_once() -> None:
    request = SubmissionRequest.model_validate(
        {
            "series": {"git": {"url": "ftp://x/", "ref": "-"}},
            "tree": "none",
            "targets": [{"plan": "dm-crypt", "device_type": "tiny"}, {"plan": "dm-crypt", "device_type": "tiny"}],
        }
    )
    pointers = [each["pointer"] for each in mistakes(request, DATA)]
    assert pointers == ["/tree", "/series/git/url", "/series/git/ref", "/targets/1"]


def test_series_needs_no_reference_setting() -> None:
    assert found({"mbox": {"text": MBOX}}, settings=["scope=cache,strict=1"]) == {}
    assert found({"mbox": {"text": MBOX}}, plan="xfs") == {}


def test_compared_kernels_need_the_same_compiler() -> None:
    targets = [{"plan": "dm-crypt", "device_type": name} for name in ("tiny", "other")]
    request = SubmissionRequest.model_validate({"series": None, "tree": "stable", "targets": targets})
    (mistake,) = mistakes(request, DATA)
    assert mistake["pointer"] == "/targets"
    assert "different compilers (clang, gcc)" in mistake["detail"]
    assert mistakes(request.model_copy(update={"recipe": "measure"}), DATA) == []


def test_backend_needs_a_device_with_that_backend() -> None:
    request = SubmissionRequest.model_validate(
        {"series": None, "tree": "stable", "targets": [{"plan": "dm-crypt", "device_type": "tiny"}], "backend": "lava"}
    )
    (mistake,) = mistakes(request, DATA)
    assert mistake["pointer"] == "/backend"
    assert "tiny has no device with backend lava, only with labgrid" in mistake["detail"]
    assert mistakes(request.model_copy(update={"backend": "labgrid"}), DATA) == []


def test_layouts_need_a_backend_that_can_boot_them() -> None:
    request = SubmissionRequest.model_validate(
        {"series": None, "tree": "stable", "targets": [{"plan": "dm-crypt", "device_type": "tiny"}], "layouts": 4}
    )
    assert mistakes(request, DATA) == []
    found = mistakes(request.model_copy(update={"backend": "lava"}), DATA)
    assert [each["pointer"] for each in found] == ["/layouts", "/backend"]
    assert "leave layouts out" in found[0]["detail"]


# --- walks ------------------------------------------------------------------------------------------------------


def walk_mistakes_of(series: Any, **more: Any) -> dict[str, str]:
    target = {"plan": "dm-crypt", "device_type": "tiny"}
    request = SubmissionRequest.model_validate(
        {"series": series, "tree": "stable", "targets": [target], "walk": True} | more
    )
    return {each["pointer"]: each["detail"] for each in mistakes(request, DATA, ["/srv/git/linux"])}


def patches(number: int) -> dict[str, Any]:
    mails = (MBOX.replace("[PATCH]", f"[PATCH {place}/{number}]") for place in range(1, number + 1))
    return {"mbox": {"text": "".join(mails)}}


@pytest.mark.parametrize("number", [2, 16])
def test_series_of_2_to_16_patches_can_be_walked(number: int) -> None:
    assert walk_mistakes_of(patches(number)) == {}


def test_branch_can_be_walked_before_its_commits_are_known() -> None:
    assert walk_mistakes_of({"git": {"url": "/srv/git/linux", "ref": "HEAD"}}) == {}


@pytest.mark.parametrize(
    ("series", "more", "pointer", "words"),
    [
        (None, {}, "/walk", "give a series, or leave walk out"),
        (patches(1), {}, "/walk", "the series has one patch"),
        (patches(17), {}, "/walk", "the series has 17 patches; a walk has at most 16"),
        (patches(3), {"looks": [6, 10]}, "/walk", "either walk or looks"),
        (patches(3), {"backend": "lava"}, "/targets/0/device_type", "not supported on devices of a LAVA lab"),
        ({"commits": {"baseline": "a" * 40, "candidate": "b" * 40, "ref": "m"}}, {}, "/walk", "as a branch"),
    ],
)
def test_mistake_of_a_walk_names_its_fix(series: Any, more: dict[str, Any], pointer: str, words: str) -> None:
    assert words in walk_mistakes_of(series, **more)[pointer]
