"""Atlases as NumPy arrays.

The C library writes straight into the arrays, which own their memory: they outlive the atlas, and nothing is copied on
the way. A field of them, as `transfers["value"]`, is a view.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from typing import TYPE_CHECKING, Any, Callable, Literal, NoReturn

import numpy as np

from isochrone import _library
from isochrone._errors import UsageError

if TYPE_CHECKING:
    from types import TracebackType

    from numpy.typing import ArrayLike, NDArray

Level = Literal["llc", "dram"]
Grade = Literal["unknown", "unusable", "disturbed", "quiet"]

#: Where a line is when it is timed, by the numbers of the C library.
LEVELS: tuple[Level, ...] = ("llc", "dram")
#: Where a number is from, by the numbers in the field `reading`.
READINGS = ("unknown", "measured", "predicted", "simulated")
#: How far an experiment may be believed.
GRADES: tuple[Grade, ...] = ("unknown", "unusable", "disturbed", "quiet")
#: What is graded.
EXPERIMENTS = ("block", "transfer", "region", "multiline", "terms", "bandwidth")
#: A number with its 95 % interval: `isochrone_cost` of the C library. NaN where it is not known.
COST = np.dtype(
    [("value", "f8"), ("lo", "f8"), ("hi", "f8"), ("reading", "u4"), ("reserved", "u4")]
)


def open(path: str | os.PathLike[str] | None = None, *, any_machine: bool = True) -> Atlas:
    """Opens the atlas at `path`, or the one of this machine where that is None.

    That is the one which the variable ISOCHRONE_ATLAS names, else `isochrone.atlas` in the current folder, else the one
    in the user's cache folder. With `any_machine=False` the file at `path` must be of this machine.

    Raises `Error` where there is none, or it cannot be used.
    """
    if path is not None and b"\0" in os.fsencode(path):
        raise UsageError("a path has no zero bytes")
    flags = _library.ANY_MACHINE if any_machine and path is not None else 0
    return Atlas(None if path is None else os.fsencode(path), flags)


class _Handle:
    """The library's handle, let go of with the last reference: a call that is under way has one of its own, so that
    no other thread takes the file away under it."""

    def __init__(self, library: ctypes.CDLL, value: int | None) -> None:
        #: What ctypes passes in its place.
        self._as_parameter_ = ctypes.c_void_p(value)
        close = weakref.finalize(self, library.isochrone_atlas_close, value)
        # A process that ends lets go of everything, and threads may still ask.
        close.atexit = False


class Atlas:
    """What was measured of a machine. Made by `open` and `map`.

    It never changes, and threads may share it. Rows and columns of arrays follow `cores` and `regions`.
    """

    def __init__(self, path: bytes | None, flags: int) -> None:
        handle, library = ctypes.c_void_p(), _library.library()
        _library.check(library.isochrone_atlas_open(path, flags, ctypes.byref(handle)))
        self._library = library
        self._open: _Handle | None = _Handle(library, handle.value)
        #: The cores, by number.
        self.cores: NDArray[np.uint32] = self._numbers(library.isochrone_atlas_cores)
        #: The memory regions of which a latency is known, by number.
        self.regions: NDArray[np.uint32] = self._numbers(library.isochrone_atlas_regions)

    def close(self) -> None:
        """Lets go of the file. Arrays stay; questions raise ValueError from then on."""
        self._open = None

    def __reduce__(self) -> NoReturn:
        raise TypeError("an open atlas is neither copied nor pickled: open its file again where it is needed")

    def __enter__(self) -> Atlas:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._open is None else ", ".join(
            f"{name} {grade}" for name, grade in self.quality.items() if grade != "unknown"
        )
        return f"<isochrone.Atlas: {len(self.cores)} cores, {len(self.regions)} regions; {state or 'not graded'}>"

    @property
    def quality(self) -> dict[str, Grade]:
        """How far each experiment may be believed. What is unusable counts as not measured below, but for lines."""
        ask = self._library.isochrone_atlas_quality
        return {name: GRADES[ask(self._handle, at)] for at, name in enumerate(EXPERIMENTS)}

    @property
    def transfers(self) -> NDArray[np.void]:
        """What a line costs that one core (row) has written and another (column) reads: `COST`, ns.

        A pair that was not measured costs what its group does, and its reading is "predicted".
        """
        count = len(self.cores)
        costs = np.empty((count, count), COST)
        status = self._library.isochrone_atlas_transfers(self._handle, costs.ctypes.data, costs.size)
        _library.check(status)
        return costs

    @property
    def region_latencies(self) -> NDArray[np.void]:
        """Latency of a region's memory (column) from a core (row): `COST`, ns."""
        return self._regions()[0]

    @property
    def region_bandwidths(self) -> NDArray[np.void]:
        """What a core (row) alone reads and writes of a region (column): `COST`, 10^9 bytes a second."""
        return self._regions()[1]

    def lines(self, core: int, level: Level = "llc") -> NDArray[np.float64]:
        """Latency of lines from a core by their bin, ns; empty where it is not known. See `bins`."""
        return self._array(self._library.isochrone_atlas_bins, np.float64, self._core(core), self._level(level))

    def latencies(self, core: int, addresses: ArrayLike, level: Level = "llc") -> NDArray[np.float64]:
        """Latency of the lines at physical addresses from a core, ns; NaN where the page is not known."""
        at = _addresses(addresses)
        ns = np.empty(at.shape, np.float64)
        self._lines(self._core(core), level, at, ns.ctypes.data, None)
        return ns

    def bins(self, addresses: ArrayLike, level: Level = "llc") -> NDArray[np.int32]:
        """Bins of the lines at physical addresses: lines of one bin are equally far, from any one core.

        -1 where the page is not known.
        """
        at = _addresses(addresses)
        bins = np.empty(at.shape, np.int32)
        self._lines(0, level, at, None, bins.ctypes.data)
        return bins

    def nearest_cores(self, core: int) -> NDArray[np.uint32]:
        """The other cores whose lines come soonest to `core`, nearest first."""
        return self._array(self._library.isochrone_atlas_nearest_cores, np.uint32, self._core(core))

    @property
    def _handle(self) -> _Handle:
        held = self._open
        if held is None:
            raise ValueError("the atlas was closed")
        return held

    def _core(self, core: int) -> int:
        if core not in self.cores:
            raise UsageError(f"core {core} is not in this atlas")
        return int(core)

    @staticmethod
    def _level(level: Level) -> int:
        if level not in LEVELS:
            raise UsageError(f"level {level!r} is none of {', '.join(LEVELS)}")
        return LEVELS.index(level)

    def _lines(
        self, core: int, level: Level, addresses: NDArray[np.uint64], ns: int | None, bins: int | None
    ) -> None:
        where = addresses.ctypes.data
        ask = self._library.isochrone_atlas_lines
        _library.check(ask(self._handle, core, self._level(level), where, addresses.size, ns, bins))

    def _regions(self) -> tuple[NDArray[np.void], NDArray[np.void]]:
        shape = (len(self.cores), len(self.regions))
        latency, bandwidth = np.empty(shape, COST), np.empty(shape, COST)
        ask = self._library.isochrone_atlas_region
        for row, core in enumerate(self.cores.tolist()):
            for column, region in enumerate(self.regions.tolist()):
                at = COST.itemsize * (row * shape[1] + column)
                places = (latency.ctypes.data + at, bandwidth.ctypes.data + at)
                _library.check(ask(self._handle, core, region, *places))
        return latency, bandwidth

    def _numbers(self, ask: Callable[..., int]) -> NDArray[np.uint32]:
        return self._array(ask, np.uint32)

    def _array(self, ask: Callable[..., int], kind: Any, *which: int) -> NDArray[Any]:
        """What a function writes that is first asked how much it has."""
        array = np.empty(ask(self._handle, *which, None, 0), kind)
        ask(self._handle, *which, array.ctypes.data, array.size)
        return array


def _addresses(addresses: ArrayLike) -> NDArray[np.uint64]:
    """Addresses side by side, as they are where they already lie so."""
    array = np.asarray(addresses)
    if array.size and array.dtype.kind not in "iu":
        raise UsageError(f"addresses are whole numbers, not {array.dtype}")
    if array.dtype.kind == "i" and array.size and array.min() < 0:
        raise UsageError("an address is below 0")
    return np.asarray(array, np.uint64, order="C")
