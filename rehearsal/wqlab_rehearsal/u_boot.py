"""Make the TFTP folder of a Chromebook: a FIT image and a file with the kernel's arguments, as depthcharge loads them.

No emulator has depthcharge. U-Boot, which QEMU runs, loads the same two files by a script of its own.
"""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

from wqlab_host import tool

from .netboot import INTERFACE, MACHINE_ADDRESS, NetbootError, Served

FIRMWARE = Path("/usr/lib/u-boot/qemu_arm64/u-boot.bin")
IMAGE, ARGUMENTS = "golden-mt8183.itb", "golden-mt8183.args"
"""Names of the files, as in docs/hardware."""
_SCRIPT = "boot.scr.uimg"
"""Name for which U-Boot asks."""
_TEXT_AT, _IMAGE_AT = 0x50000000, 0x60000000
"""Physical addresses at which U-Boot loads the arguments file and the FIT image. Memory begins at 0x40000000 and has at
least 1 GiB; U-Boot uses its beginning itself."""


def write_files(root: Path, served: Served, tree: Path) -> None:
    """Fill the TFTP folder `root`. `tree` is the file of the device tree. Raises NetbootError."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    parts = root.with_name("fit")
    shutil.rmtree(parts, ignore_errors=True)
    parts.mkdir()
    # A build has Image.gz, and depthcharge unpacks lz4 only.
    (parts / "Image").write_bytes(gzip.decompress(served.kernel.read_bytes()))
    _run("lz4", "-q", "-9", "-f", str(parts / "Image"), str(parts / "Image.lz4"))
    # TFTP has one small block on the way at a time: compressed, the image takes a third of the time.
    _run("zstd", "--quiet", "--force", "-19", str(served.rootfs), "-o", str(parts / "rootfs.cpio"))
    shutil.copyfile(tree, parts / "board.dtb")
    source = parts / "golden.its"
    source.write_text(fit_source())
    _run("mkimage", "-f", str(source), str(root / IMAGE))
    (root / ARGUMENTS).write_text(f"{served.command_line}\n")
    text = parts / "boot.txt"
    text.write_text(script())
    _run("mkimage", "-A", "arm64", "-T", "script", "-C", "none", "-d", str(text), str(root / _SCRIPT))


def fit_source() -> str:
    """Return the text of golden.its, the same as in docs/hardware. Its files are beside it."""
    return """\
/dts-v1/;
/ {
    description = "golden system of wqlab";
    images {
        kernel {
            data = /incbin/("Image.lz4");
            type = "kernel";
            arch = "arm64";
            os = "linux";
            compression = "lz4";
            load = <0x41000000>;
            entry = <0x41000000>;
        };
        fdt {
            data = /incbin/("board.dtb");
            type = "flat_dt";
            arch = "arm64";
            compression = "none";
        };
        ramdisk {
            data = /incbin/("rootfs.cpio");
            type = "ramdisk";
            arch = "arm64";
            os = "linux";
            compression = "none";
        };
    };
    configurations {
        default = "board";
        board {
            kernel = "kernel";
            fdt = "fdt";
            ramdisk = "ramdisk";
        };
    };
};
"""


def script() -> str:
    """Return U-Boot's commands: load both files, take the kernel's arguments from the second, and start the first."""
    name = b"bootargs="
    writes = [f"mw.b {_TEXT_AT + place:#x} {byte:#x}" for place, byte in enumerate(name)]
    return "\n".join(
        [
            # A text without a name becomes a variable by a name in front of it.
            *writes,
            f"tftpboot {_TEXT_AT + len(name):#x} {ARGUMENTS} || reset",
            f"setexpr size ${{filesize}} + {len(name)}",
            f"env import -t {_TEXT_AT:#x} ${{size}} bootargs",
            f"tftpboot {_IMAGE_AT:#x} {IMAGE} || reset",
            f"bootm {_IMAGE_AT:#x}",
            "reset",
            "",
        ]
    )


def dnsmasq_configuration(root: Path, leases: Path, device: str, mac: str) -> str:
    """Return dnsmasq's configuration, which gives the USB adapter a fixed address and serves `root` by TFTP."""
    return f"""\
port=0
interface={INTERFACE}
bind-interfaces
dhcp-authoritative
no-ping
dhcp-range=192.0.2.100,192.0.2.150,1h
dhcp-host={mac},{device},{MACHINE_ADDRESS}
dhcp-leasefile={leases}
enable-tftp
tftp-root={root}
dhcp-boot={IMAGE}
log-facility=-
"""


def _run(*words: str) -> None:
    tool.output(list(words), NetbootError)
