"""Job definitions of the LAVA backend, without LAVA."""

from __future__ import annotations

import pytest
import yaml

from wqlab_contracts.loading import load_data
from wqlab_contracts.messages import RunJob
from wqlab_worker.backends.lava.job_definition import Sources, TemplateError, define

from .conftest import ROOT
from .lava_jobs import BOOTS, SOURCES, defined, kinds


def test_one_job_makes_every_boot_through_the_golden_system(job: RunJob) -> None:
    definition, document = defined(job)
    assert kinds(document) == ["deploy", "boot", "boot", "test", "boot", "boot", "test"]
    assert definition.stages == [
        (0, "deploy"), (0, "golden"), (0, "kexec"), (0, "test"), (1, "golden"), (1, "kexec"), (1, "test")
    ]  # fmt: skip
    assert (document["device"], document["device_type"], document["priority"]) == ("qemu-01", "qemu", 70)
    assert document["notify"]["callbacks"][0]["url"] == SOURCES.callback
    kexecs = [a["boot"] for a in document["actions"] if a.get("boot", {}).get("method") == "kexec"]
    assert [kexec["kernel"] for kexec in kexecs] == ["baseline", "candidate"]
    for kexec, token in zip(kexecs, ("t0", "t1"), strict=True):
        assert f"wqlab.token={token}" in kexec["options"][0]
    limits = [next(iter(a.values()))["timeout"]["seconds"] for a in document["actions"]]
    assert document["timeouts"]["job"]["seconds"] >= sum(limits)
    [step] = document["actions"][3]["test"]["definitions"][0]["repository"]["run"]["steps"]
    assert step == "/lab/measure b0-0-baseline-0 0 baseline http://10.0.2.2:1/s0"


@pytest.mark.parametrize(("emulated", "options"), [(True, ["--no-checks"]), (False, [])])
def test_kexec_checksums_only_on_real_devices(job: RunJob, emulated: bool, options: list[str]) -> None:
    device = job.device.model_copy(update={"emulated": emulated})
    _, document = defined(job.model_copy(update={"device": device}))
    kexecs = [a["boot"] for a in document["actions"] if a.get("boot", {}).get("method") == "kexec"]
    assert [kexec["options"][1:] for kexec in kexecs] == [options, options]


def test_device_without_kexec_is_deployed_for_every_boot(job: RunJob) -> None:
    definition, document = defined(job, kexec=False)
    assert kinds(document) == ["deploy", "boot", "test"] * 2
    assert definition.stages == [(n, phase) for n in (0, 1) for phase in ("deploy", "kexec", "test")]
    urls = [a["deploy"]["images"]["kernel"]["url"] for a in document["actions"] if "deploy" in a]
    assert urls == ["http://w/kernel-baseline", "http://w/kernel-candidate"]


@pytest.mark.parametrize("boot", ["grub", "ipxe", "depthcharge", "qemu"])
def test_every_template_gives_a_deploy_and_a_boot(job: RunJob, boot: str) -> None:
    images = {"kernel": "http://g/kernel", "ramdisk": "http://g/ramdisk.gz", "dtb": "http://g/device.dtb"}
    template = load_data(ROOT).lava_templates[boot]
    _, document = defined(job, boot=boot, template=template, images=images, ramdisk_compression="gz")
    assert document["actions"][1]["boot"]["method"] == boot
    assert "http://g/ramdisk.gz" in yaml.safe_dump(document["actions"][0])


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{{ nothing }}", "'nothing' is undefined"),
        ("- boot: {}", "expected a boot, with a deploy"),
        ("just words", "no list of actions"),
        ("- {", "while parsing"),
        ("{{ images.kernel.x }}", "qemu.yaml.jinja2"),
    ],
)
def test_a_broken_template_is_named(job: RunJob, template: str, words: str) -> None:
    with pytest.raises(TemplateError, match=r"qemu\.yaml\.jinja2") as error:
        defined(job, template=template)
    assert words in str(error.value)


def test_missing_image_is_named(job: RunJob) -> None:
    lava = job.device.lava
    assert lava is not None
    nothing = Sources(overlay="o", images={}, variants={}, results={}, callback="c")
    with pytest.raises(TemplateError, match=r"lava\.images"):
        define(job, BOOTS, ["t0", "t1"], nothing, "name")
