"""The command `isochrone`, which this package installs: what measures, predicts and describes machines runs it.

A measurement must own its process (it binds threads and maps memory), so it is never done inside of Python.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sysconfig
import termios
from importlib import metadata
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Callable

from isochrone._atlas import Atlas
from isochrone._atlas import open as open_atlas
from isochrone._errors import Error, NotInstalledError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Exit codes of the command.
_WRONG_USAGE = 2
_INTERRUPTED = 3
# What a refusal begins with: the command's own, and that of its command line.
_REFUSALS = ("isochrone: ", "error: ")
# How words of a command line are written tells nothing to who has called a function.
_USAGE = re.compile(r"\n\s*(?:Usage:|For more information).*", re.DOTALL)
# What turns before a line of progress: patterns of Braille, and the blank behind.
_SPINNER = "".join(chr(at) for at in range(0x2800, 0x2900)) + " "
# The widest terminal that the command fills.
_COLUMNS = 200
# What moves the cursor or colours.
_ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")


def command() -> Path:
    """Where the command of this package lies.

    Raises `NotInstalledError` where it is not there; one of another installation is never taken.
    """
    places = [Path(sysconfig.get_path("scripts"))]
    try:
        files = metadata.files("isochrone") or []
        # As the installer has written it down: right for environments, for --user and for a system's Python.
        places[:0] = [Path(str(file.locate())).parent for file in files if file.name == "isochrone"]
    except metadata.PackageNotFoundError:
        pass
    # pip install --target DIR
    places.append(Path(__file__).resolve().parent.parent / "bin")
    for place in places:
        found = place / "isochrone"
        if found.is_file() and os.access(found, os.X_OK):
            return found.resolve()
    looked = ", ".join(str(place) for place in places)
    raise NotInstalledError(f"the command isochrone is in none of {looked}: install the package again")


def machine(name: str | os.PathLike[str] | None = None) -> dict[str, Any]:
    """A machine as a dictionary: this one, one of the papers' by its name, or that of a TOML file or hwloc's XML.

    By `isochrone machine --json`, whose form is `isochrone-machine` of the schemas.
    """
    return _json(["machine", "--json", *([] if name is None else ["--", os.fspath(name)])])


def predict(
    collective: str,
    *,
    machine: str | os.PathLike[str] | None = None,
    atlas: str | os.PathLike[str] | None = None,
    threads: int | Iterable[int] | None = None,
    bytes: int | None = None,
    root: int | None = None,
    simulate: bool = False,
) -> dict[str, Any]:
    """The best tree of a collective ("bcast", "barrier", ...), and between which times it takes.

    On a described `machine`, or on this one by its `atlas`. Nothing is measured; with `simulate` what was chosen is
    simulated as well. By `isochrone predict --json`, whose form is `isochrone-predict` of the schemas.
    """
    words = ["predict", "--json=-"]
    if isinstance(threads, int):
        threads = [threads]
    options = {
        "--machine": machine,
        "--atlas": atlas,
        "--threads": None if threads is None else ",".join(str(int(count)) for count in threads),
        "--bytes": bytes,
        "--root": root,
    }
    words += [f"{option}={os.fspath(v) if isinstance(v, os.PathLike) else v}" for option, v in options.items() if v is not None]
    words += ["--simulate"] if simulate else []
    return _json([*words, "--", collective])


def map(  # noqa: A001
    out: str | os.PathLike[str] = "isochrone.atlas",
    *,
    quick: bool = False,
    budget: float | None = None,
    only: str | Sequence[str] = (),
    cores: str | None = None,
    seed: int | None = None,
    force: bool = False,
    report: str | os.PathLike[str] | None = None,
    progress: Callable[[str], object] | None = None,
) -> Atlas:
    """Measures this machine and opens the atlas. By `isochrone map`, with its rules for what is replaced.

    `budget` is in seconds. The report goes to `report`, or beside the atlas. `progress` gets a line whenever the
    command would draw one on a terminal. Ctrl-C ends the command, which keeps what it has, and raises KeyboardInterrupt.
    """
    out = Path(out)
    html = Path(report) if report is not None else out.with_suffix(".html")
    words = ["map", "--quiet", "--color=never", f"--out={out}", f"--html={html}"]
    words += ["--quick"] if quick else []
    words += ["--force"] if force else []
    words += [] if budget is None else [f"--budget={budget}s"]
    # A string is a sequence of letters.
    words += [f"--only={only if isinstance(only, str) else ','.join(only)}"] if only else []
    words += [] if cores is None else [f"--cores={cores}"]
    words += [] if seed is None else [f"--seed={seed}"]
    said = _watched(words, progress or (lambda _: None))
    places = [line.split(maxsplit=1)[1] for line in said.splitlines() if line.startswith("atlas ")]
    if not places:
        raise Error(f"the command does not say where the atlas is:\n{said}")
    # `atlas   PATH (SIZE)`
    return open_atlas(places[-1].rsplit(" (", 1)[0])


def _json(words: list[str]) -> dict[str, Any]:
    done = subprocess.run(
        [command(), *words], stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    _raise(done.returncode, done.stderr)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def _watched(words: list[str], progress: Callable[[str], object]) -> str:
    """Runs the command with a terminal for its progress; what it printed."""
    ours, its = pty.openpty()
    # A terminal without a width has 80 columns, and lines are cut or wrapped.
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, _COLUMNS, 0, 0))
    try:
        child = subprocess.Popen(
            [command(), *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=its,
            env={**os.environ, "COLUMNS": str(_COLUMNS)},
            start_new_session=True,
        )
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(its)
    printed: list[bytes] = []
    assert child.stdout is not None
    reader = Thread(target=lambda: printed.append(child.stdout.read()))  # type: ignore[union-attr]
    reader.start()
    lines: list[str] = []
    try:
        for line in _lines(ours):
            lines.append(line)
            progress(line)
    except BaseException:
        # The command keeps what was measured, within two seconds.
        child.send_signal(signal.SIGINT)
        raise
    finally:
        # Closed first: a command that writes to a full terminal would never end.
        os.close(ours)
        child.wait()
        reader.join()
        child.stdout.close()
    complaints = [at for at, line in enumerate(lines) if line.startswith(_REFUSALS)]
    _raise(child.returncode, "\n".join(lines[complaints[0] if complaints else -1 :]).encode())
    return b"".join(printed).decode(errors="replace")


def _lines(terminal: int) -> Iterable[str]:
    """Lines as they are drawn, each once, without what moves the cursor or turns; until nobody writes any more."""
    left, last = b"", ""
    while True:
        try:
            read = os.read(terminal, 1 << 16)
        except OSError:
            # Linux says so where the other end was closed.
            read = b""
        *whole, left = re.split(rb"[\r\n]+", _ESCAPES.sub(b"", left + read))
        for line in whole if read else [*whole, left]:
            text = line.decode(errors="replace").strip().lstrip(_SPINNER)
            if text and text != last:
                yield text
            last = text
        if not read:
            return


def _raise(code: int, said: bytes) -> None:
    """Raises what the command said where it has failed."""
    if code == 0:
        return
    words = _USAGE.sub("", said.decode(errors="replace")).strip()
    for begin in _REFUSALS:
        words = words.removeprefix(begin)
    if code == _INTERRUPTED:
        raise KeyboardInterrupt(words)
    raise (UsageError if code == _WRONG_USAGE else Error)(words or f"the command ended with {code}", code)
