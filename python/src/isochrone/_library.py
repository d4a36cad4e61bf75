"""The C library (`isochrone.h`), which lies in this package. Nothing else here knows of pointers."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_double, c_int, c_int32, c_size_t, c_uint32, c_uint64, c_void_p
from functools import lru_cache
from pathlib import Path
from typing import Any

from isochrone._errors import Error, NotInstalledError, UsageError

ANY_MACHINE = 1
ARGUMENT = 1

# Functions as `isochrone.h` declares them: what they return, and what they take.
_FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "isochrone_error": (c_char_p, []),
    "isochrone_version": (c_char_p, []),
    "isochrone_atlas_open": (c_int, [c_char_p, c_uint32, POINTER(c_void_p)]),
    "isochrone_atlas_close": (None, [c_void_p]),
    "isochrone_atlas_cores": (c_size_t, [c_void_p, c_void_p, c_size_t]),
    "isochrone_atlas_regions": (c_size_t, [c_void_p, c_void_p, c_size_t]),
    "isochrone_atlas_latency": (c_double, [c_void_p, c_uint32, c_uint32, c_uint64]),
    "isochrone_atlas_line_class": (c_int32, [c_void_p, c_uint32, c_uint64]),
    "isochrone_atlas_lines": (
        c_int,
        [c_void_p, c_uint32, c_uint32, c_void_p, c_size_t, c_void_p, c_void_p],
    ),
    "isochrone_atlas_bins": (c_size_t, [c_void_p, c_uint32, c_uint32, c_void_p, c_size_t]),
    "isochrone_atlas_transfers": (c_int, [c_void_p, c_void_p, c_size_t]),
    "isochrone_atlas_region": (c_int, [c_void_p, c_uint32, c_uint32, c_void_p, c_void_p]),
    "isochrone_atlas_nearest_cores": (c_size_t, [c_void_p, c_uint32, c_void_p, c_size_t]),
    "isochrone_atlas_quality": (c_uint32, [c_void_p, c_uint32]),
}


@lru_cache(maxsize=None)
def library() -> ctypes.CDLL:
    """The library, loaded once."""
    path = Path(__file__).with_name("libisochrone.so.0")
    try:
        loaded = ctypes.CDLL(str(path))
    except OSError as error:
        raise NotInstalledError(f"{path} cannot be loaded: {error}") from error
    for name, (returns, takes) in _FUNCTIONS.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = returns, takes
    return loaded


def version() -> str:
    """The version of the library that runs, as in "0.1.0"."""
    text: bytes = library().isochrone_version()
    return text.decode()


def check(status: int) -> None:
    """Raises what the library said where a call has failed."""
    if status == 0:
        return
    words = library().isochrone_error().decode(errors="replace")
    raise (UsageError if status == ARGUMENT else Error)(words, status)
