"""How far every core is from every memory block, region and other core.

    import isochrone

    atlas = isochrone.map(quick=True)
    print(atlas.transfers["value"])

An atlas is read by the C library that this package brings, straight into NumPy's memory. What measures, predicts or
describes machines runs the command `isochrone`, which is installed with this package, and needs no shell.
"""

from isochrone._atlas import COST, EXPERIMENTS, GRADES, LEVELS, READINGS, Atlas, Grade, Level, open
from isochrone._command import command, machine, map, predict
from isochrone._errors import Error, NotInstalledError, UsageError
from isochrone._library import version

__version__ = version()

__all__ = [
    "COST",
    "EXPERIMENTS",
    "GRADES",
    "LEVELS",
    "READINGS",
    "Atlas",
    "Error",
    "Grade",
    "Level",
    "NotInstalledError",
    "UsageError",
    "command",
    "machine",
    "map",
    "open",
    "predict",
]
