"""`wqlab ab`: wrong options are refused with reason and remedy, before a folder is made."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from ab_runs import ROOT, ScriptedBackend, begun
from commandline import Wqlab

from wqlab_client.ab import kernels, machine, run
from wqlab_client.ab.job import emulated_type, find_data
from wqlab_client.ab.machine import lab_server, own_server
from wqlab_client.ab.recipes import recipe_for
from wqlab_client.ab.state import MachineNote, StateFolder
from wqlab_client.errors import UsageError
from wqlab_worker.backends.ab.look import Look, warnings
from wqlab_worker.build.kernel_image import KernelImage

DATA = find_data(ROOT)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with two kernels, in which the command is called."""
    monkeypatch.chdir(tmp_path)

    def read(path: Path) -> KernelImage:
        path.read_bytes()
        return KernelImage(path.name, "ab" * 20)

    monkeypatch.setattr(kernels, "read_kernel_image", read)
    for name in ("6.12.1", "6.12.2"):
        (tmp_path / name).touch()
    return tmp_path


GIVEN = ["--kernels", "6.12.1", "6.12.2"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "no target is named"),
        (["ryzen", *GIVEN, "--plan", "hackbench"], "ryzen is neither qemu nor USER@HOST"),
        (["qemu", *GIVEN], "no plan is named"),
        (["qemu", "--plan", "hackbench"], "two kernels are needed"),
        (["qemu", "HEAD", "--plan", "hackbench"], "two kernels are needed"),
        (["qemu", "HEAD~1", "HEAD", *GIVEN, "--plan", "hackbench"], "two kernels are needed"),
        (["qemu", "HEAD~1", "HEAD", "--plan", "hackbench"], "HEAD~1"),
        (["qemu", "HEAD", "./absent", "--plan", "hackbench"], "HEAD"),
        (["qemu", *GIVEN, "--settings", "scope=cache", "scope=system", "--plan", "hackbench"], "one kernel is needed"),
        (["qemu", "./6.12.1", "--settings", "a=1", "a=2", "--plan", "hackbench"], "has no knob 'a'"),
        (["qemu", "HEAD", ".", "--plan", "hackbench", "--config", "absent"], "--config absent: "),
        (["qemu", "HEAD", ".", "--plan", "hackbench", "--config", "6.12.1"], "no configuration of an x86-64 kernel"),
        (["qemu", "HEAD", ".", "--plan", "hackbench", "--config", "machine"], "an emulator has no configuration"),
        (["qemu", "--quick", *GIVEN], "one kernel is needed"),
        (["root@ryzen", "--quick", "HEAD"], "--quick has plans of its own"),
        (["qemu", *GIVEN, "--plan", "hackbensh"], "no plan hackbensh"),
        (["qemu", *GIVEN, "--plan", "hackbench", "--topology", "rysen-3900x"], "no device type rysen-3900x"),
        (["qemu", *GIVEN, "--plan", "hackbench", "--topology", "modelled-tiny"], "is not one that `wqlab ab` emulates"),
        (["qemu", *GIVEN, "--plan", "hackbench", "--scenario", "tubes"], "has no scenario tubes"),
        (["qemu", *GIVEN, "--plan", "hackbench", "--parameter", "loops"], "no value"),
        (["qemu", "--kernels", "6.12.1", "absent", "--plan", "hackbench"], "kernel absent"),
        (["qemu", *GIVEN, "--plan", "hackbench", "--rootfs", "absent"], "--rootfs absent: no such file"),
        (["--resume"], "there is no wqlab-ab-* folder here"),
        (["nowhere", "--resume"], "is no folder of `wqlab ab`"),
    ],
)
def test_wrong_options_are_refused_and_make_no_folder(
    wqlab: Wqlab, here: Path, arguments: list[str], reason: str
) -> None:
    done = wqlab("ab", *arguments)
    assert done.code == 2, done.err
    assert reason in done.err
    assert list(here.glob("wqlab-ab-*/ab.json")) == []


def test_machine_is_refused_before_kernels_are_built(wqlab: Wqlab, monkeypatch: pytest.MonkeyPatch) -> None:
    """No repository is here: a build would fail."""
    seen = {"user": ["1000"], "arch": ["x86_64"], "address": ["192.0.2.5"]}
    monkeypatch.setattr(machine, "look_at", lambda target: SimpleNamespace(look=Look(seen), target=target))
    done = wqlab("ab", "jane@ryzen", "HEAD~1", "HEAD", "--plan", "hackbench")
    assert done.code == 2 and "the login is not root's" in done.err


def test_resume_takes_the_newest_folder(wqlab: Wqlab, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = here / "wqlab-ab-one"
    folder.mkdir()
    begun(folder)
    monkeypatch.setattr(run, "_backend", lambda *_: ScriptedBackend(stop_in=1))
    stopped = wqlab("ab", "--resume")
    assert stopped.code == 130 and "go on with `wqlab ab --resume wqlab-ab-one`" in stopped.err
    monkeypatch.setattr(run, "_backend", lambda *_: ScriptedBackend())
    done = wqlab("ab", "--resume")
    assert done.code == 0 and "6.12.1-patched against 6.12.1" in done.out


def test_existing_folder_is_not_used_again(wqlab: Wqlab, here: Path) -> None:
    folder = here / "wqlab-ab-hackbench"
    folder.mkdir()
    begun(folder)
    done = wqlab("ab", "qemu", *GIVEN, "--plan", "hackbench")
    assert done.code == 2 and "go on with `wqlab ab --resume wqlab-ab-hackbench`" in done.err


def test_the_recipe_is_that_of_the_device_type_with_the_plans_fragments() -> None:
    for plan in ("hackbench", "wireguard"):
        recipe = recipe_for(DATA, plan, "tiny")
        assert (recipe.name, recipe.emulated) == (emulated_type(DATA, "tiny").recipe, True)
        assert list(recipe.fragments) == DATA.plans[plan].fragments
    assert not recipe_for(DATA, "hackbench", None).emulated


@pytest.mark.parametrize(
    ("target", "address"),
    [
        ("root@ryzen", ("ryzen", 0, "root")),
        ("jane@ryzen.example.org:2222", ("ryzen.example.org", 2222, "jane")),
        ("root@192.0.2.5", ("192.0.2.5", 0, "root")),
    ],
)
def test_a_machine_is_reached_as_the_users_configuration_says(target: str, address: tuple[str, int, str]) -> None:
    own, lab = own_server(target), lab_server(target, Path("/key"))
    assert (own.address, own.port, own.username) == address
    assert own.user_config and not own.new_host_key and not own.keyfile
    assert (lab.address, lab.port, lab.username, lab.keyfile) == (*address[:2], "root", "/key")
    assert lab.user_config and lab.new_host_key


@pytest.mark.parametrize("target", ["root@", "root@-oProxyCommand=x", "root@a b", "root@a:b", "@"])
def test_what_is_no_address_never_reaches_ssh(target: str) -> None:
    with pytest.raises(UsageError, match="no SSH address"):
        own_server(target)


@pytest.mark.parametrize(
    ("config", "driver", "known"),
    [
        ("CONFIG_E1000E=y\n", "e1000e", True),
        ("CONFIG_E1000E=m\n", "e1000e", False),
        ("# CONFIG_E1000E is not set\n", "e1000e", False),
        ("CONFIG_BNXT=y\n", "bnxt_en", True),
    ],
)
def test_a_kernel_without_the_cards_driver_is_recognised(here: Path, config: str, driver: str, known: bool) -> None:
    (here / "config").write_text(config)
    kernel = kernels.GivenKernel("k", here / "6.12.1", "6.12.1", "ab" * 20, None, here / "config")
    assert machine._has_driver(kernel, driver) is known


def test_watchdog_is_used_if_every_kernel_is_known_to_have_its_driver(here: Path) -> None:
    modules = here / "modules"
    (modules / "kernel").mkdir(parents=True)
    (modules / "kernel" / "i6300esb.ko").touch()
    (modules / "modules.builtin").write_text("kernel/drivers/watchdog/iTCO_wdt.ko\n")
    has = kernels.GivenKernel("k", here / "6.12.1", "6.12.1", "ab" * 20, modules, None)
    unknown = kernels.GivenKernel("k", here / "6.12.2", "6.12.2", "ab" * 20, None, None)
    look = Look({"watchdog": ["watchdog0 iTCO_wdt iTCO_wdt", "watchdog1 softdog Software Watchdog"]})
    assert machine.watchdogs(look, [has, has]) == ["iTCO_wdt", "i6300esb"]
    assert machine.watchdogs(look, [has, unknown]) == []


def test_resumed_run_asks_about_new_warnings(wqlab: Wqlab, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = here / "wqlab-ab-one"
    folder.mkdir()
    begun(folder)
    state = StateFolder(folder)
    note = MachineNote(name="ryzen", has_systemd=True, warnings=warnings(Look({"login": ["jane on pts/0"]})))
    state.write_plan(state.read_plan().model_copy(update={"machine": note, "target": "root@ryzen"}))
    monkeypatch.setattr(run, "_backend", lambda *_: ScriptedBackend())
    seen = {"login": ["jane on pts/0"]}
    monkeypatch.setattr(machine, "look_at", lambda _: SimpleNamespace(look=Look(seen)))
    seen["guest"] = ["qemu-system-x86"]
    asked = wqlab("ab", "--resume")
    assert asked.code == 2 and "WARNING: a virtual machine runs there" in asked.err and "jane" not in asked.err
    assert wqlab("ab", "--resume", "--yes").code == 0
    assert wqlab("ab", "--resume").code == 0, "nothing is new since the last confirmation"
