"""Puts a tree that was built into the wheel; `cargo xtask package wheel` names it.

Programs become scripts and the rest data, so that below the prefix of an environment they lie as `cargo xtask install`
has them: the command finds its laboratory in `../libexec` and what it preloads in `../lib`.
"""

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PRELOADED = ("libisochrone_malloc.so", "libisochrone_mpi.so", "libisochrone_pager.so")


class Tree(BuildHookInterface):  # type: ignore[type-arg]
    """Adds files, and the tag of the machine that they are for."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        named = os.environ.get("ISOCHRONE_TREE")
        if named is None:
            raise SystemExit("what the wheel holds is built by `cargo xtask package wheel`, and not by pip alone")
        tree, platform = Path(named), os.environ["ISOCHRONE_PLATFORM"]
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
        build_data["force_include"][str(tree / "lib/libisochrone.so.0")] = "isochrone/libisochrone.so.0"
        build_data["shared_scripts"][str(tree / "bin/isochrone")] = "isochrone"
        data = build_data["shared_data"]
        data[str(tree / "libexec/isochrone-lab")] = "libexec/isochrone-lab"
        data[str(tree / "share/man/man1")] = "share/man/man1"
        data[str(tree / "share/doc/isochrone/THIRD-PARTY")] = "share/doc/isochrone/THIRD-PARTY"
        for name in PRELOADED:
            data[str(tree / "lib" / name)] = f"lib/{name}"
