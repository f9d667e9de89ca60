"""One source, two ways to run: values, kernels and generic functions, and what they stand on."""

from tiebreak.engine.cache import NO_KERNELS, cache_folder, hash_of_sources
from tiebreak.engine.kernels import (
    Generic,
    Kernel,
    Value,
    compilable,
    compile_seconds,
    generic,
    interpreted,
    kernel,
    registered_for,
)
from tiebreak.engine.origins import PACKAGE, foreign_classes

__all__ = [
    "NO_KERNELS",
    "PACKAGE",
    "Generic",
    "Kernel",
    "Value",
    "cache_folder",
    "compilable",
    "compile_seconds",
    "foreign_classes",
    "generic",
    "hash_of_sources",
    "interpreted",
    "kernel",
    "registered_for",
]
