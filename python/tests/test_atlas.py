"""Atlases as arrays, against what the command writes of the same files; and what is refused.

Run from the installed wheel. The atlases are stored ones, so numbers do not hang on what this machine does now; one is
measured here.
"""

from __future__ import annotations

import copy
import gc
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isochrone

STORED = Path(__file__).resolve().parents[2] / "fuzz/corpus/atlas_reader"
ATLASES = sorted(STORED.glob("valid-*"))
KNOWN = STORED / "valid-exact-cells"


def exported(path: Path) -> dict[str, Any]:
    """The same atlas as the command writes it."""
    words = [str(isochrone.command()), "export", str(path), "--json=-"]
    told: dict[str, Any] = json.loads(subprocess.run(words, check=True, capture_output=True).stdout)
    return told


def medians(matrix: dict[str, Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Medians of a matrix as the command writes it; NaN where it has none."""
    cells = [np.nan if cell is None else cell["median"] for cell in matrix["cells"]]
    return np.array(cells).reshape(len(matrix["rows"]), len(matrix["columns"]))


@pytest.mark.parametrize("path", ATLASES, ids=lambda path: path.name)
def test_arrays_are_what_the_command_exports(path: Path) -> None:
    told = exported(path)
    with isochrone.open(path) as atlas:
        assert atlas.transfers.dtype == isochrone.COST
        measured = atlas.transfers["reading"] == isochrone.READINGS.index(told["reading"])
        wanted = np.full(measured.shape, np.nan)
        for one in told["transfers"]:
            if one["state"] == "modified":
                wanted = medians(one["latency_ns"])
        np.testing.assert_array_equal(measured, np.isfinite(wanted))
        np.testing.assert_allclose(atlas.transfers["value"][measured], wanted[measured])
        random = [one for one in told["regions"] if one["mode"] == "random"]
        if random:
            wanted = medians(random[0]["latency_ns"])
            np.testing.assert_allclose(atlas.region_latencies["value"], wanted)
        grades = {name: one["grade"] for name, one in told.get("quality", {}).items()}
        assert {name: grade for name, grade in atlas.quality.items() if grade != "unknown"} == grades


def test_the_numbers_of_a_stored_atlas() -> None:
    atlas = isochrone.open(KNOWN)
    assert atlas.cores.tolist() == [0, 1] and atlas.regions.tolist() == [0]
    costs = atlas.transfers
    assert costs["value"][0, 1] == 50.5 and costs["value"][1, 0] == 51.5
    assert costs["lo"][0, 1] < 50.5 < costs["hi"][0, 1]
    assert np.isnan(costs["value"].diagonal()).all()
    assert np.shares_memory(costs["value"], costs)
    assert atlas.region_latencies["value"].tolist() == [[131.25], [134.75]]
    assert atlas.nearest_cores(0).tolist() == [1]
    assert atlas.quality["transfer"] == "disturbed" and atlas.quality["block"] == "unknown"
    assert repr(atlas) == "<isochrone.Atlas: 2 cores, 1 regions; transfer disturbed>"


@pytest.mark.parametrize("path", ATLASES, ids=lambda path: path.name)
def test_lines_bins_and_latencies_agree(path: Path) -> None:
    atlas, told = isochrone.open(path), exported(path)
    core = int(atlas.cores[0])
    pages = np.arange(0, 1 << 22, dtype=np.uint64) * np.uint64(4096)
    for level in isochrone.LEVELS:
        table, known = atlas.lines(core, level), pages[atlas.bins(pages, level) >= 0][:100]
        described = next((one for one in told["levels"] if one["level"] == level), None)
        if described is not None and described["form"] == "pattern":
            assert len(table) == described["classes"] * described["period"]
            pattern = described["bases"][described["core_base"][0]]["patterns"][0]
            scale = 1e9 / told["clock"]["hz"]
            np.testing.assert_allclose(table[: described["period"]], np.array(pattern) * scale, rtol=1e-5)
        lines = known[:, None] + np.arange(64, dtype=np.uint64) * np.uint64(64)
        bins, ns = atlas.bins(lines, level), atlas.latencies(core, lines, level)
        assert bins.shape == ns.shape == (len(known), 64)
        if len(table):
            np.testing.assert_allclose(ns, table[bins])
    if path == KNOWN:
        assert len(atlas.lines(0, "llc")) == 64


def test_shapes_of_addresses_are_kept_and_others_are_refused() -> None:
    atlas = isochrone.open(KNOWN)
    grid = np.arange(12, dtype=np.uint64).reshape(3, 4)[:, ::2]
    assert atlas.latencies(0, grid).shape == (3, 2)
    assert atlas.bins(np.uint64(0)).shape == ()
    assert atlas.bins([]).shape == (0,)
    assert atlas.bins(2**64 - 1) == -1
    for wrong in ([1.5], ["x"], [-1], [2**64]):
        with pytest.raises(isochrone.UsageError):
            atlas.bins(wrong)
    with pytest.raises(isochrone.UsageError, match="level"):
        atlas.bins([0], "l2")  # type: ignore[arg-type]
    with pytest.raises(isochrone.UsageError, match="core 65535"):
        atlas.lines(65535)


def test_arrays_outlive_the_atlas_and_questions_do_not() -> None:
    atlas = isochrone.open(KNOWN)
    transfers = atlas.transfers["value"]
    before = transfers.copy()
    atlas.close()
    atlas.close()
    for ask in (lambda: atlas.transfers, lambda: atlas.quality, lambda: atlas.lines(0)):
        with pytest.raises(ValueError, match="closed"):
            ask()
    assert "closed" in repr(atlas)
    del atlas
    gc.collect()
    np.testing.assert_array_equal(transfers, before)


def test_an_open_atlas_is_not_copied() -> None:
    # A copy would share the library's handle, and one of them would let go of it under the other.
    atlas = isochrone.open(KNOWN)
    for ask in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="open its file again"):
            ask(atlas)
    assert atlas.transfers["value"][0, 1] == 50.5


CLOSED_BESIDE_QUESTIONS = """
import sys, threading, isochrone

def asks(atlas):
    try:
        while True:
            assert atlas.bins(pages).shape == pages.shape
    except ValueError:
        pass

import numpy as np
pages = np.zeros(1 << 16, np.uint64)
for _ in range(40):
    atlas = isochrone.open(sys.argv[1])
    threads = [threading.Thread(target=asks, args=(atlas,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    atlas.bins(pages)
    atlas.close()
    for thread in threads:
        thread.join()
"""


def test_a_thread_may_close_what_others_ask() -> None:
    # In a process of its own, which a fault would end.
    words = [sys.executable, "-c", CLOSED_BESIDE_QUESTIONS, str(KNOWN)]
    ended = subprocess.run(words, check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


def test_an_atlas_that_is_replaced_stays_what_it_was(tmp_path: Path) -> None:
    path, anew = tmp_path / "a.atlas", tmp_path / "b.atlas"
    path.write_bytes(KNOWN.read_bytes())
    other = next(one for one in ATLASES if one != KNOWN)
    anew.write_bytes(other.read_bytes())
    atlas = isochrone.open(path)
    os.replace(anew, path)
    assert atlas.transfers["value"][0, 1] == 50.5
    path.unlink()
    assert atlas.transfers["value"][0, 1] == 50.5


def test_what_is_no_atlas_is_refused_in_the_librarys_words(tmp_path: Path) -> None:
    none = tmp_path / "none.atlas"
    with pytest.raises(isochrone.Error, match="none.atlas"):
        isochrone.open(none)
    none.write_bytes(KNOWN.read_bytes()[:100])
    with pytest.raises(isochrone.Error, match="none.atlas"):
        isochrone.open(none)
    with pytest.raises(isochrone.Error, match="another machine"):
        isochrone.open(KNOWN, any_machine=False)
    # A path ends there for C, and another file would be opened.
    with pytest.raises(isochrone.UsageError, match="zero"):
        isochrone.open(f"{KNOWN}\0more")


def test_a_map_of_this_machine_is_opened_and_its_progress_told(tmp_path: Path) -> None:
    out = tmp_path / "this machine.atlas"
    lines: list[str] = []
    with isochrone.map(out, quick=True, seed=7, progress=lines.append) as atlas:
        assert set(atlas.cores.tolist()) <= os.sched_getaffinity(0)
    assert any("%" in line and "s left" in line for line in lines), lines
    assert all(line[0].isascii() and "\x1b" not in line for line in lines), lines
    assert all(one != next for one, next in zip(lines, lines[1:])), lines
    assert out.exists() and out.with_suffix(".html").exists()
    assert exported(out)["provenance"]["seed"] == 7
