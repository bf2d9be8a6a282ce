"""Schema of the data folder: device types, kernel trees and recipes, test plans, what makes submissions by itself.

Each YAML file that a lab operator writes has a model here. `loading.py` reads the files and reports violations with
file, line and key. Unknown fields are rejected.
"""

from .archives import Archive
from .base import CpuArch, LastLevel, Name, Strict
from .conditions import Condition, Conditions
from .devices import (
    Backend,
    BootMethod,
    Command,
    DeviceType,
    Emulation,
    ExternalPower,
    LavaMapping,
    LavaTimeouts,
    Netconsole,
    OwnSystem,
    Rehearsed,
    ScratchDevice,
    Unit,
    console_arguments,
)
from .forges import Forge, ForgeKind
from .generated import DIMENSIONS, NOUNS, Dimension, GeneratedTopology, counted
from .instrumented import INSTRUMENTED_METRICS
from .kernels import KernelRecipe, Tree
from .metrics import Metric
from .plans import (
    INSTRUMENTED_BLOCKS,
    NO_SETTING,
    Axis,
    Curve,
    Profile,
    Reference,
    Repetitions,
    Scenario,
    TestPlan,
    Tradeoff,
    format_setting,
    parse_setting,
)
from .topology import Cluster, Topology
from .validation import CostProfileId, Validation, why_withheld
from .watches import Batch, ListWatch, TreeWatch, WatchSpec

__all__ = [
    "DIMENSIONS",
    "INSTRUMENTED_BLOCKS",
    "INSTRUMENTED_METRICS",
    "NOUNS",
    "NO_SETTING",
    "Archive",
    "Axis",
    "Backend",
    "Batch",
    "BootMethod",
    "Cluster",
    "Command",
    "Condition",
    "Conditions",
    "CostProfileId",
    "CpuArch",
    "Curve",
    "DeviceType",
    "Dimension",
    "Emulation",
    "ExternalPower",
    "Forge",
    "ForgeKind",
    "GeneratedTopology",
    "KernelRecipe",
    "LastLevel",
    "LavaMapping",
    "LavaTimeouts",
    "ListWatch",
    "Metric",
    "Name",
    "Netconsole",
    "OwnSystem",
    "Profile",
    "Reference",
    "Rehearsed",
    "Repetitions",
    "Scenario",
    "ScratchDevice",
    "Strict",
    "TestPlan",
    "Topology",
    "Tradeoff",
    "Tree",
    "TreeWatch",
    "Unit",
    "Validation",
    "WatchSpec",
    "console_arguments",
    "counted",
    "format_setting",
    "parse_setting",
    "why_withheld",
]
