"""Paired comparison of kernels: effects, intervals, verdicts. Pure: no clock, no network, no database.

samples = read_csv(path)              or Samples.from_columns(...)
comparisons = compare(samples)        one per plan x device type x scenario x setting x metric
conclude(comparisons, ...)            the verdict of one target, in a sentence
"""

from .boots import boot_values
from .compare import compare
from .csvfile import CsvError, read_csv, write_csv
from .curves import curves
from .effect import estimate as estimate_effect
from .power import LEAST_BLOCKS, MOST_BLOCKS, blocks_of_family, blocks_that_find, smallest_effect
from .questions import TargetFacts
from .samples import Samples, SamplesError
from .significance import ALPHA
from .summary import Stated, summarise
from .target import Conclusion, conclude, deciding, is_regression

__all__ = [
    "ALPHA",
    "LEAST_BLOCKS",
    "MOST_BLOCKS",
    "Conclusion",
    "CsvError",
    "Samples",
    "SamplesError",
    "Stated",
    "TargetFacts",
    "blocks_of_family",
    "blocks_that_find",
    "boot_values",
    "compare",
    "conclude",
    "curves",
    "deciding",
    "estimate_effect",
    "is_regression",
    "read_csv",
    "smallest_effect",
    "summarise",
    "write_csv",
]
