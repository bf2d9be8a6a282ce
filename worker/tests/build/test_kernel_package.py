"""Kernels of Debian packages; apt is replaced, unless the machine's own is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from wqlab_host.apt import AptError
from wqlab_worker.build import kernel_package
from wqlab_worker.build.kernel_package import unpack_kernel_package
from wqlab_worker.failures import UserError

KERNEL = "linux-image-6.12.1-amd64"


@pytest.fixture(autouse=True)
def unpacked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Packages that were unpacked; one is a meta package, one is unknown."""
    done: list[str] = []

    class FakeApt:
        def __init__(self, _private: Path) -> None: ...

        def versions(self, packages: list[str]) -> dict[str, str]:
            if packages == ["linux-image-9.9.9-amd64"]:
                raise AptError("apt does not know package linux-image-9.9.9-amd64 for amd64")
            return dict.fromkeys(packages, "1:6.12.1-1")

        def unpack(self, versions: dict[str, str], scratch: Path) -> Path:
            done.extend(versions)
            (scratch / "tree/boot").mkdir(parents=True)
            if KERNEL in versions:
                (scratch / "tree/boot/vmlinuz-6.12.1-amd64").touch()
            return scratch / "tree"

    monkeypatch.setattr(kernel_package, "Apt", FakeApt)
    return done


def test_a_package_is_unpacked_once(tmp_path: Path, unpacked: list[str]) -> None:
    first = unpack_kernel_package(KERNEL, tmp_path)
    assert (first / "boot/vmlinuz-6.12.1-amd64").exists()
    assert unpack_kernel_package(KERNEL, tmp_path) == first
    assert unpacked == [KERNEL]
    assert [each.name for each in (tmp_path / "packages").iterdir()] == [f"{KERNEL}_1_6.12.1-1"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("linux-image-amd64", "has no kernel"),
        ("linux-image-9.9.9-amd64", "apt has no package linux-image-9.9.9-amd64"),
        ("bash", "no package of a kernel"),
        ("linux-image-../../etc", "no package of a kernel"),
        ("-o=Dir::Etc=x", "no package of a kernel"),
    ],
)
def test_what_is_no_kernel_is_refused_with_the_way_out(tmp_path: Path, name: str, reason: str) -> None:
    with pytest.raises(UserError, match=reason) as caught:
        unpack_kernel_package(name, tmp_path)
    assert caught.value.failure.advice
