#!/bin/sh
# Slurm's Prolog: a node that deviates from its equals is drained before a job gets it.
#
# slurm.conf:  Prolog=/etc/slurm/isochrone-prolog.sh
#              PrologEpilogTimeout=120
#
# Slurm drains a node whose prolog ends with another code than 0. A node is measured once in MAX_AGE minutes, which takes
# about 10 s; the folder must be one that all nodes see and only root writes. The first maps, from which nodes are known
# to be equal, are made once: srun --ntasks-per-node=1 isochrone map --quick --fleet /shared/isochrone
set -u
FLEET=${ISOCHRONE_FLEET:-/shared/isochrone}
MAX_AGE=${ISOCHRONE_MAX_AGE:-1440}
NODE=$(cat /proc/sys/kernel/hostname)
PATH=/usr/local/bin:/usr/bin:/bin

# Without a fleet there is nothing to compare with, and no reason to keep jobs away.
command -v isochrone >/dev/null && [ -d "$FLEET" ] || exit 0

measure() { isochrone map --quick --fleet "$FLEET" >/dev/null 2>&1 || exit 0; }
judge() { found=$(isochrone fleet outliers "$FLEET" --node "$NODE" --check 2>&1); [ $? -ne 4 ]; }

if [ -z "$(find "$FLEET" -maxdepth 1 -name "$NODE.atlas" -mmin "-$MAX_AGE" 2>/dev/null)" ]; then
    measure
fi
judge && exit 0

# What one map finds a second one has to find too: the first may be of before the node was mended.
measure
judge && exit 0
logger -t isochrone "$found" 2>/dev/null
echo "print $NODE deviates from its equals: isochrone fleet outliers $FLEET --node $NODE"
exit 1
