"""Start a lab without devices, with a simulated history of a watched tree, so that a newcomer sees its pages full."""

from __future__ import annotations

import os
from collections.abc import Callable

import httpx

from .lifecycle import Lab
from .paths import LabPaths
from .prepare import prepare_pages

NAME = "demo-history"
"""Suffix of the lab's state folder. The demo has its own database, so that examples never mix with measurements."""
NOTICE = (
    "Simulated examples: no kernel was built or booted for the figures of this lab, and they are no evidence. "
    "They show what the pages of a history look like."
)


def demo_history_lab(paths: LabPaths, report: Callable[[str], None]) -> Lab:
    """Return the lab of the examples, beside the lab of `paths`."""
    return Lab(paths.named(NAME), report)


def start(lab: Lab) -> None:
    """Start the stores, the API and the pages, and fill the database unless it is filled already. Raises LabError."""
    os.environ["WQLAB_NOTICE"] = NOTICE
    prepare_pages(lab.paths)
    lab.up_without_devices()
    lab.report("simulating the heads of a watched tree")
    lab.report(lab.run_program(["wqlab-server", "example-history"]).strip().splitlines()[-1])


def usage(paths: LabPaths) -> str:
    """Return what a newcomer can look at."""
    with httpx.Client(base_url=f"{paths.url}/api/v1/history", timeout=60, trust_env=False) as history:
        of = "device_type=ryzen-3900x&limit=50"
        (line,) = history.get(f"/lines?{of}&metric=locks_per_fsync").raise_for_status().json()["items"]
        shift = history.get(f"/shifts?{of}&state=confirmed").raise_for_status().json()["items"][0]
    return f"""
{NOTICE}

    what shifted this week, by device type   {paths.url}/history
    a metric over {line["points"]} heads                   {paths.url}/history/{line["id"]}
    a regression that is confirmed           {paths.url}/history/shifts/{shift["id"]}

`make stop-demo-history` stops this lab and removes {paths.state}."""
