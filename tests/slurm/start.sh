#!/bin/bash
# A whole SLURM on this one machine, to try sweeps on: accounting on MariaDB, one node with the cores there are, and two
# partitions: a job on `high` takes the place of one on `low`, which is requeued.
#
#   eval "$(tests/slurm/start.sh)"     # starts what is not yet running, and tells this shell where its slurm.conf is
#   sinfo; srun hostname
#   tests/slurm/stop.sh                # ends everything it started; --clean removes its folder too
#
# No systemd, no cgroups and no settings of the machine are touched: keys, configuration, state, logs and sockets stand in
# one folder, $LONGSUMBENCH_SLURM (without it, longsumbench-slurm-<user> in the folder for temporary files). The four
# packages must be installed; root's first start does that itself. Any other user can start it too.
set -euo pipefail

folder=${LONGSUMBENCH_SLURM:-${TMPDIR:-/tmp}/longsumbench-slurm-$(id -un)}
port=${LONGSUMBENCH_SLURM_PORT:-6817} # of slurmctld; the next two are slurmd's and slurmdbd's
user=$(id -un)
packages="slurm-wlm munge slurmdbd mariadb-server"
export PATH=$PATH:/usr/sbin:/sbin # Debian keeps daemons where users do not look

say() { echo "$*" >&2; }
fail() {
    say "tests/slurm/start.sh: $*"
    exit 1
}

# Wait until a command succeeds, for at most a minute.
wait_for() {
    local what=$1 log=$2
    shift 2
    local end=$((SECONDS + 60))
    while [ "$SECONDS" -lt "$end" ]; do
        timeout 10 "$@" >"$folder/log/last_check" 2>&1 && return
        sleep 0.2
    done
    fail "no $what after 60 s: $(tail -n 1 "$folder/log/last_check"); see $log"
}

# Whether the daemon of a process-id file is alive (and is that daemon: numbers are used again).
alive() {
    local file=$folder/run/$1.pid
    [ -s "$file" ] && [ "$(cat "/proc/$(cat "$file")/comm" 2>/dev/null)" = "$1" ]
}

install_packages() {
    local missing=
    for command in slurmctld slurmd slurmdbd munged mariadbd; do
        command -v "$command" >/dev/null || missing+=" $command"
    done
    [ -z "$missing" ] && return
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || fail "missing:$missing; install (Debian) $packages"
    say "installing $packages"
    # A file that forbids services to start on installation: the packages' own would take our ports.
    local forbids=/usr/sbin/policy-rc.d
    [ -e "$forbids" ] || { printf '#!/bin/sh\nexit 101\n' >"$forbids" && chmod +x "$forbids" && trap "rm -f $forbids" EXIT; }
    { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $packages; } \
        >"$folder/log/apt" 2>&1 || fail "apt-get failed; see $folder/log/apt"
}

write_configuration() {
    [ -s "$folder/munge.key" ] || head -c 1024 /dev/urandom >"$folder/munge.key"
    chmod 600 "$folder/munge.key"
    local node cpus memory
    node=$(hostname -s)
    cpus=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc) # which heeds these two
    memory=$(awk '/MemTotal/ {print int($2 / 1024)}' /proc/meminfo) # MiB
    cat >"$folder/slurm.conf" <<END
ClusterName=longsumbench
SlurmctldHost=$node(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
# A requeued job begins no sooner than its first credential has expired: 120 s, if not said otherwise.
AuthInfo=socket=$folder/run/munge.socket,cred_expire=10
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/run/slurmctld.pid
SlurmdPidFile=$folder/run/slurmd.pid
SlurmctldLogFile=$folder/log/slurmctld
SlurmdLogFile=$folder/log/slurmd
# No cgroups: processes are followed through /proc, and nothing binds them to cores.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SlurmdParameters=config_overrides
ReturnToService=2
MpiDefault=none
# Cores are shared out, memory is not.
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=5,bf_interval=5
KillWait=5
JobRequeue=1
EnforcePartLimits=ALL # a job that no node can ever hold is refused, not queued for ever
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=$((port + 2))
# Not a password but a socket of munge: without it, that of a second daemon is looked for.
AccountingStoragePass=$folder/run/munge.socket
NodeName=$node NodeAddr=127.0.0.1 CPUs=$cpus RealMemory=$memory State=UNKNOWN
PartitionName=low Nodes=ALL Default=YES PriorityTier=1 PreemptMode=REQUEUE
PartitionName=high Nodes=ALL PriorityTier=2 PreemptMode=OFF
END
    cat >"$folder/slurmdbd.conf" <<END
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort=$((port + 2))
SlurmUser=$user
AuthType=auth/munge
AuthInfo=socket=$folder/run/munge.socket
PidFile=$folder/run/slurmdbd.pid
LogFile=$folder/log/slurmdbd
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=$user
StorageLoc=slurm_accounting
END
    chmod 600 "$folder/slurmdbd.conf" # slurmdbd insists
}

start_munged() {
    alive munged && return
    munged --force --key-file="$folder/munge.key" --socket="$folder/run/munge.socket" --pid-file="$folder/run/munged.pid" \
        --log-file="$folder/log/munged" --seed-file="$folder/state/munge.seed" >&2
    wait_for "munged" "$folder/log/munged" munge -n -S "$folder/run/munge.socket"
}

# Over a socket only, as whoever starts it: the socket tells the database who asks, so there is no password.
start_mariadbd() {
    alive mariadbd && return
    local socket=$folder/run/mariadb.socket
    [ -d "$folder/database/mysql" ] || mariadb-install-db --no-defaults --user="$user" --datadir="$folder/database" \
        --auth-root-authentication-method=socket --auth-root-socket-user="$user" --skip-test-db \
        >"$folder/log/mariadb-install-db" 2>&1 || fail "see $folder/log/mariadb-install-db"
    setsid mariadbd --no-defaults --user="$user" --datadir="$folder/database" --socket="$socket" --skip-networking \
        --pid-file="$folder/run/mariadbd.pid" --log-error="$folder/log/mariadbd.err" --innodb-buffer-pool-size=64M \
        --performance-schema=OFF </dev/null >/dev/null 2>&1 &
    wait_for "MariaDB" "$folder/log/mariadbd.err" mariadb --no-defaults --socket="$socket" --execute="
        CREATE USER IF NOT EXISTS '$user'@'localhost' IDENTIFIED VIA unix_socket;
        GRANT ALL ON slurm_accounting.* TO '$user'@'localhost';"
}

start_slurm() {
    if ! alive slurmdbd; then
        MYSQL_UNIX_PORT=$folder/run/mariadb.socket slurmdbd
        wait_for "slurmdbd" "$folder/log/slurmdbd" sacctmgr --immediate --noheader show cluster
    fi
    if ! alive slurmctld; then
        sacctmgr --immediate add cluster longsumbench >/dev/null 2>&1 || true # there already, from the second start on
        slurmctld
        wait_for "slurmctld" "$folder/log/slurmctld" scontrol ping
    fi
    alive slurmd || slurmd -N "$(hostname -s)"
    wait_for "idle node" "$folder/log/slurmd" sh -c "sinfo --noheader --format=%t | grep -qE '^(idle|mix|alloc)$'"
    wait_for "accounting" "$folder/log/slurmctld" sh -c "sacctmgr --noheader show cluster | grep -q 127.0.0.1"
}

mkdir -p "$folder"/{run,log,state,spool,database}
folder=$(cd "$folder" && pwd)
chmod 755 "$folder" "$folder/run" # munged refuses a socket in a folder that others may write to
export SLURM_CONF=$folder/slurm.conf
exec 9>"$folder/start.lock"
flock 9 # two at once would start everything twice
install_packages
alive slurmctld || write_configuration
{
    start_munged
    start_mariadbd
    start_slurm
} 9>&- # a daemon would keep the lock
say "SLURM $(sinfo --version | cut -d' ' -f2) on $(hostname -s): $(sinfo --noheader --format='%P %a %D node %c cores %t' | tr '\n' ';')"
echo "export SLURM_CONF=$SLURM_CONF"
