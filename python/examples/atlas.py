# %% [markdown]
# # This machine in ten cells
# Cells begin with `# %%`, which editors and Jupyter (through jupytext) read; as a script it runs from top to bottom.

# %% Measure, or take the atlas that is there.
from pathlib import Path

import numpy as np

import isochrone

path = Path("isochrone.atlas")
atlas = isochrone.open(path) if path.exists() else isochrone.map(path, quick=True, progress=print)
print(atlas)

# %% What may be believed.
for experiment, grade in atlas.quality.items():
    print(f"{experiment:10} {grade}")

# %% How far are cores from one another? Rows have written the line, columns read it.
transfers = atlas.transfers
with np.printoptions(precision=1, suppress=True):
    print("ns of a line\n", transfers["value"])
width = transfers["hi"] - transfers["lo"]
if np.isfinite(width).any():
    print(f"widest 95 % interval: {np.nanmax(width):.1f} ns")

# %% Which numbers were timed, and which are a group's?
for number, name in enumerate(isochrone.READINGS):
    print(f"{name:10} {(transfers['reading'] == number).sum()}")

# %% Memory: latency and what one core alone moves.
for row, core in enumerate(atlas.cores):
    for column, region in enumerate(atlas.regions):
        ns = atlas.region_latencies["value"][row, column]
        gb = atlas.region_bandwidths["value"][row, column]
        print(f"core {core}, region {region}: {ns:.1f} ns, {gb:.1f} GB/s")

# %% Lines of a page in the last-level cache: the nearest quarter of them beside all.
for core in atlas.cores:
    ns = atlas.lines(int(core), "llc")
    if len(ns):
        near = np.sort(ns)[: max(1, len(ns) // 4)]
        print(f"core {core}: {ns.mean():.1f} ns, nearest quarter {near.mean():.1f} ns")

# %% A machine that is not here, and what a broadcast takes there (predicted, nothing is measured).
machine = isochrone.machine("xeon-e5-2660-2s")
print(machine["title"], "with", len(machine["cores"]), "cores")
for row in isochrone.predict("bcast", machine="xeon-e5-2660-2s", threads=[2, 4, 8])["threads"]:
    print(f"{row['threads']} threads: {row['t_min_ns']:.0f} to {row['t_max_ns']:.0f} ns, {row['tree']}")
