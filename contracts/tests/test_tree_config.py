"""`.wqlab.yaml` and `intake/forges.yaml`: mistakes are named by line, and hostile files end nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from wqlab_contracts.forges_file import FILE, find_forge, read_forges
from wqlab_contracts.messages import Target
from wqlab_contracts.tree_config import FILE as TREE_FILE
from wqlab_contracts.tree_config import TreeConfig, read_tree_config
from wqlab_contracts.yamlfile import PROBLEM_LIMIT, Document

FULL = """\
targets:
  - xfs-fsync@xeon-2s
  - target: locks@single
    params: {runtime_s: 20, engine: psync}
    scenarios: [flush]
paths: [kernel/workqueue.c, kernel/locking/]
branches: [for-next, "wq/*"]
blocks: 8
recipe: debug
"""


def test_everything_a_file_can_say() -> None:
    config = read_tree_config(FULL)
    assert [target.as_target() for target in config.targets] == [
        Target(plan="xfs-fsync", device_type="xeon-2s"),
        Target(
            plan="locks",
            device_type="single",
            scenarios=["flush"],
            parameters={"runtime_s": 20, "engine": "psync"},
        ),
    ]
    assert config.matches_branch("for-next")
    assert config.matches_branch("wq/a/b")
    assert not config.matches_branch("for-next-2")
    assert config.matches_paths(["README", "kernel/locking/rwsem.c"])
    assert not config.matches_paths(["kernel/workqueue.c.orig", "kernel/locking"])
    assert config.matches_paths([], complete=False), "an incomplete list may lack a wanted file"
    assert (config.blocks, config.recipe, config.pull_requests) == (8, "debug", True)
    assert not config.what_it_touches and read_tree_config("what_it_touches: true\n").targets == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("targets:\n  - a@b\n  - locks\n", ".wqlab.yaml:3: targets[1]: String should match"),
        ("targets:\n  - target: a@b\n    parms: {}\n", ".wqlab.yaml:3: targets[0].parms: unknown field; did you mean"),
        ("targets: []\n", ".wqlab.yaml:1: targets is empty: name what is measured"),
        ("targets:\n  - a@b\n  - a@b\n", ".wqlab.yaml:2: targets[0]: targets has 'a@b' twice"),
        ("targets: [a@b]\npaths: [/etc]\n", ".wqlab.yaml:2: paths[0]: "),
        ("targets: [a@b]\ntargets: [c@d]\n", ".wqlab.yaml:2: targets: key is written twice"),
        ("targets: [\n", ".wqlab.yaml:2: not valid YAML"),
        ("", ".wqlab.yaml:1: the file is empty"),
        ("a: &x [1]\nb: *x\n", ".wqlab.yaml:1: b: an alias (*name) repeats a value"),
        ("\0", ".wqlab.yaml: not valid YAML"),
    ],
)
def test_a_mistake_is_named_by_its_line(text: str, problem: str) -> None:
    with pytest.raises(ValueError) as error:
        read_tree_config(text)
    assert str(error.value).startswith(problem)


@pytest.mark.parametrize("text", ["[" * 60_000, "a:\n" + "- " * 20_000, "{a: " * 10_000])
def test_deep_nesting_is_refused_instead_of_ending_the_process(text: str) -> None:
    with pytest.raises(ValueError, match="nested more than 100 levels deep"):
        read_tree_config(text)


FORGE = """\
forges:
  - name: hub
    kind: github
    url: https://github.com
    repository: wq/linux
    secret_file: {folder}/secret
    token_file: {folder}/token
    user: wqlab-bot
    tree: mainline
    owner: dev
"""


def forges(folder: Path, text: str) -> list[str]:
    (folder / "intake").mkdir(exist_ok=True)
    (folder / FILE).write_text(text.replace("{folder}", str(folder)))
    return [str(problem) for problem in read_forges(folder, {"mainline"})[1]]


def test_addresses_of_a_forge_and_its_secrets(tmp_path: Path) -> None:
    assert forges(tmp_path, FORGE) == []
    forge = find_forge(tmp_path, "hub")
    assert forge is not None
    assert find_forge(tmp_path, "other") is None
    assert (forge.api_url, forge.git_url) == ("https://api.github.com", "https://github.com/wq/linux.git")
    with pytest.raises(ValueError, match=r"secret_file .* cannot be read"):
        forge.read_secret()
    (tmp_path / "secret").write_text("short\n")
    with pytest.raises(ValueError, match="must have the secret in one line"):
        forge.read_secret()
    (tmp_path / "secret").write_text("long-enough\n")
    assert forge.read_secret() == "long-enough"
    for kind, api in (("github", "api/v3"), ("gitlab", "api/v4"), ("gitea", "api/v1")):
        assert (
            forges(tmp_path, FORGE.replace("kind: github", f"kind: {kind}").replace("//github.com", "//f.org/x/")) == []
        )
        found = find_forge(tmp_path, "hub")
        assert found is not None
        assert found.api_url == f"https://f.org/x/{api}"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("https://github.com", "http://git.lab", "http is allowed only with `private: true`"),
        ("https://github.com", "https://me:pw@git.lab", "url contains credentials"),
        ("owner: dev", "owner: dev\n    may_spend: listed", "belong together"),
        ("owner: dev", "owner: dev\n    users: [ada]", "belong together"),
        ("tree: mainline", "tree: mainlin", "no tree 'mainlin'; did you mean mainline?"),
        ("https://github.com", "http://git.lab\n    private: true", "git is needed"),
        ("repository: wq/linux", "repository: linux", "repository"),
        ("{folder}/secret", "secret", "secret_file"),
    ],
)
def test_mistakes_of_the_operator(tmp_path: Path, old: str, new: str, problem: str) -> None:
    (found,) = forges(tmp_path, FORGE.replace(old, new))
    assert problem in found
    assert found.startswith(FILE)
    assert find_forge(tmp_path, "hub") is None or "tree" in old


def test_one_name_for_two_forges_is_refused(tmp_path: Path) -> None:
    (found,) = forges(tmp_path, FORGE + FORGE.removeprefix("forges:\n"))
    assert "hub is defined twice" in found


def test_a_file_of_many_mistakes_is_refused_at_the_first_ones() -> None:
    """Each explanation searches the whole file: 64 KiB of unknown keys took ten seconds of a tick."""
    document = Document.parse("".join(f"k{number}: 1\n" for number in range(6000)), TREE_FILE)
    assert document.validate_as(TreeConfig) is None
    assert len(document.problems) == PROBLEM_LIMIT
    assert str(min(document.problems)).startswith(".wqlab.yaml:1: k0: unknown field")
