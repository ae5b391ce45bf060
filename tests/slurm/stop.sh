#!/bin/bash
# End what start.sh started, jobs first; --clean also removes the folder with all state and logs.
set -euo pipefail

folder=${LONGSUMBENCH_SLURM:-${TMPDIR:-/tmp}/longsumbench-slurm-$(id -un)}
export SLURM_CONF=$folder/slurm.conf
[ -d "$folder" ] || exit 0

alive() {
    local file=$folder/run/$1.pid
    [ -s "$file" ] && [ "$(cat "/proc/$(cat "$file")/comm" 2>/dev/null)" = "$1" ]
}

alive slurmctld && timeout 20 scancel --full --signal=KILL --user="$(id -un)" 2>/dev/null || true
alive slurmctld && timeout 20 scancel --user="$(id -un)" 2>/dev/null || true
for daemon in slurmd slurmctld slurmdbd mariadbd munged; do # each may still tell the next one its last words
    alive "$daemon" || continue
    process=$(cat "$folder/run/$daemon.pid")
    kill "$process"
    for _ in $(seq 150); do
        kill -0 "$process" 2>/dev/null || break
        sleep 0.2
    done
    ! kill -0 "$process" 2>/dev/null || { echo "tests/slurm/stop.sh: $daemon ($process) does not end" >&2 && exit 1; }
done
[ "${1:-}" != "--clean" ] || rm -r "$folder"
