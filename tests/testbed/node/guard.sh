#!/usr/bin/env bash
# Holds whatever a node is outside its processes: a folder, a network namespace, a cgroup and private mounts. It prints
# "ready FOLDER PID" once they're there, PID being the process that keeps the mounts. When its input ends, because the
# test is done or was killed, it ends every process of the node and removes all again. It also removes what an earlier
# guard left that was killed itself. One node at a time: the others wait here for the machine's lock.
set -euo pipefail
export PATH=$PATH:/usr/sbin:/sbin
name=kafka-features-node
state=/run/$name
link=kf-node           # the host's end of the node's network
host=10.201.0.1 node=10.201.0.2 pods=10.244.0.0/24

# the cgroup in each hierarchy: one (version 2), or one a controller (version 1)
cgroups() {
  local root
  if [ -e /sys/fs/cgroup/cgroup.controllers ]; then echo "/sys/fs/cgroup/$name"; return; fi
  for root in /sys/fs/cgroup/*/; do [ ! -e "${root}cgroup.procs" ] || echo "$(realpath "$root")/$name"; done | sort -u
}
# the one that all the node's processes are in; pods make cgroups of their own below each
daemons() {
  if [ -e /sys/fs/cgroup/cgroup.controllers ]; then echo "/sys/fs/cgroup/$name/daemons"; return; fi
  echo "/sys/fs/cgroup/pids/$name/daemons"
}

# kill_all: until none is left, since one may be starting another
kill_all() {
  local processes _
  for _ in $(seq 400); do
    # shellcheck disable=SC2046
    processes=$(find $(cgroups) -name cgroup.procs -exec cat {} + 2>/dev/null | sort -u || true)
    [ -n "$processes" ] || return 0
    kill -KILL $processes 2>/dev/null || true
    sleep 0.02
  done
  echo "guard: these don't end:" $processes >&2
  return 1
}
clean() {
  local folder group _
  kill_all
  for group in $(cgroups); do
    for _ in $(seq 50); do
      [ -d "$group" ] || break
      find "$group" -depth -type d -exec rmdir {} \; 2>/dev/null || true
      [ ! -d "$group" ] || sleep 0.02
    done
  done
  ip link delete "$link" 2>/dev/null || true
  ip netns delete "$name" 2>/dev/null || true
  folder=$(cat "$state/folder" 2>/dev/null || true)
  if [ -n "$folder" ]; then rm -rf --one-file-system "$folder"; fi
  rm -f "$state/folder"
}

trap '' PIPE
trap 'exit 1' INT HUP TERM
mkdir -p "$state"
exec 9>"$state/lock"
flock --nonblock 9 || { echo "guard: another node runs on this machine; waiting for its end" >&2; flock 9; }
clean
trap clean EXIT
folder=$(mktemp -d -t node.XXXXXX)
chmod 755 "$folder"
echo "$folder" >"$state/folder"

for group in $(cgroups); do
  mkdir -p "$group"
  case $group in
    */cpuset/*) for file in cpuset.cpus cpuset.mems; do cat "${group%/*}/$file" >"$group/$file"; done ;;
  esac
done
mkdir -p "$(daemons)"

ip netns add "$name"
ip link add "$link" type veth peer name eth0 netns "$name"
ip address add $host/24 dev "$link"
ip link set "$link" up
ip -n "$name" link set lo up
ip -n "$name" address add $node/24 dev eth0
ip -n "$name" link set eth0 up
ip -n "$name" route add default via $host
ip route add $pods via $node
nsenter --net="/run/netns/$name" sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward; echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter'

# Private mounts: pods' volumes vanish with them. The kubelet wants some settings of the kernel and would set them; it
# finds them set already, by files laid over the real ones.
hold_mounts='
  set -e
  echo $$ >"$1/cgroup.procs"
  mount --make-rshared /
  for folder in /run/containerd /run/netns /var/lib/kubelet /var/lib/cni; do
    mkdir -p "$folder"; mount -t tmpfs tmpfs "$folder"
  done
  mkdir "$2/sysctl"
  for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
    kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
    file=$2/sysctl/$(basename "${setting%=*}")
    echo "${setting#*=}" >"$file"; mount --bind "$file" "/proc/sys/${setting%=*}"
  done
  touch "$2/mounted"
  exec sleep infinity'
setsid unshare --mount --propagation private bash -c "$hold_mounts" mounts "$(daemons)" "$folder" \
  </dev/null >"$folder/mounts.log" 2>&1 9>&- &
holder=$!
disown $holder # bash still waits for it, and says nothing of its end
until [ -e "$folder/mounted" ]; do
  kill -0 $holder 2>/dev/null || { cat "$folder/mounts.log" >&2; exit 1; }
  sleep 0.02
done
echo "ready $folder $holder $(daemons)" || true
read -r _ || true
exit 0
