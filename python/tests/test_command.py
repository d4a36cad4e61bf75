"""What goes through the command: results, its words where it refuses, and how it ends. Run from the installed wheel."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import isochrone


def running(word: str) -> list[str]:
    """Processes whose command line has this word. Not by `pgrep`, which small systems lack."""
    lines = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(place.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            # It has ended meanwhile.
            continue
    return [line for line in lines if word in line]


def test_the_command_is_the_one_of_this_environment() -> None:
    place = isochrone.command()
    assert place.is_relative_to(Path(sys.prefix).resolve())
    said = subprocess.run([place, "--version"], check=True, capture_output=True, text=True).stdout
    assert isochrone.__version__ in said


def test_its_laboratory_and_preloaded_libraries_are_found() -> None:
    subprocess.run([isochrone.command(), "bench", "--help"], check=True, capture_output=True)
    ran = subprocess.run([isochrone.command(), "run", "--", "true"], check=False, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "libisochrone_malloc.so lies neither" not in ran.stderr


def test_machines_are_dictionaries() -> None:
    bullion = isochrone.machine("bullion-s-16s")
    assert bullion["format"] == "isochrone-machine"
    assert len(bullion["cores"]) == 288 and len(bullion["regions"]) == 16
    assert len(isochrone.machine()["cores"]) >= 1


def test_collectives_are_predicted() -> None:
    told = isochrone.predict("bcast", machine="xeon-e5-2660-2s", threads=[2, 4], bytes=8)
    assert told["reading"] == "predicted" and [row["threads"] for row in told["threads"]] == [2, 4]
    assert isochrone.predict("barrier", machine="xeon-e5-2660-2s", threads=2)["collective"] == "barrier"


def test_what_it_refuses_is_raised_in_its_words(tmp_path: Path) -> None:
    with pytest.raises(isochrone.UsageError, match="no-such-machine") as refused:
        isochrone.machine("no-such-machine")
    assert refused.value.code == 2
    with pytest.raises(isochrone.UsageError, match="nonsense") as refused:
        isochrone.predict("nonsense")
    assert not str(refused.value).startswith("error") and "--help" not in str(refused.value)
    # A word that looks like an option is a name.
    with pytest.raises(isochrone.Error, match="--list"):
        isochrone.machine("--list")
    nowhere = tmp_path / "no" / "such" / "a.atlas"
    with pytest.raises(isochrone.Error, match="--out"):
        isochrone.map(nowhere, quick=True)
    for only in ["nonsense"], "nonsense":
        with pytest.raises(isochrone.UsageError, match="nonsense"):
            isochrone.map(tmp_path / "a.atlas", only=only)


def test_a_failing_callback_ends_the_command(tmp_path: Path) -> None:
    class Enough(Exception):
        pass

    def progress(line: str) -> None:
        raise Enough(line)

    with pytest.raises(Enough):
        isochrone.map(tmp_path / "a.atlas", progress=progress)
    assert running(str(tmp_path)) == [], "the command still runs"
