# Sourced by the other scripts: settings, messages, processes.
#
# Everything the cluster needs to keep is below $state; sockets, which must have short paths, are below $sockets.
# All processes live in one network namespace: nothing listens on this machine's own addresses.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
state=${OLMKIT_CLUSTER_STATE:-$root/dev/.state}
cache=${OLMKIT_DEV_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/olmkit}
bin=$cache/bin
sockets=/run/olmkit-dev
network=olmkit-dev
node=olmkit-node
node_ip=10.77.0.1
pod_range=10.88.0.0/16
service_range=10.96.0.0/16
registry=localhost:5000          # plain HTTP, as every client treats localhost
registry_tls=localhost:5443      # the same content with TLS
olm_version=v0.46.0
olmkit=${OLMKIT:-$(make -s --no-print-directory -C "$root" print-olmkit)}; export OLMKIT=$olmkit

pki=$state/pki logs=$state/logs pids=$state/pids
inside=(nsenter "--net=/run/netns/$network")
kubectl=("${inside[@]}" "$bin/kubectl" --kubeconfig "$state/admin.kubeconfig")
ctr=(ctr -a "$sockets/containerd.sock" -n k8s.io)
unset CI   # with it, OLM's HTTP client panics on objects that lack OLM's label

begin=${OLMKIT_BEGIN:-$(date +%s)}; export OLMKIT_BEGIN=$begin
say() { printf '[%3ds] %s\n' $(($(date +%s) - begin)) "$*" >&2; }
die() {
  say "error: $*"
  local log; for log in ${log_tails:-}; do printf -- '--- last lines of %s\n' "$logs/$log.log" >&2; tail -n 15 "$logs/$log.log" >&2 || true; done
  exit 1
}

# start_time PID: when the process started, in clock ticks. It detects that the process id
# now belongs to another process. Zombies count as ended.
start_time() { awk '{ sub(/^.*\) /, ""); if ($1 != "Z" && $1 != "X") print $20 }' "/proc/$1/stat" 2>/dev/null; }
alive() {
  local pid started
  read -r pid started 2>/dev/null < "$pids/$1" || return 1
  [ -n "$started" ] && [ "$(start_time "$pid")" = "$started" ]
}
# start NAME COMMAND…: runs it detached in the network namespace, output to logs/NAME.log; nothing when it runs already.
start() {
  local name=$1; shift
  alive "$name" && return 0
  (cd "$state" && exec setsid nohup "${inside[@]}" "$@" > "$logs/$name.log" 2>&1 < /dev/null) & local pid=$!
  sleep 0.05
  echo "$pid $(start_time $pid)" > "$pids/$name"
}
# ask_to_stop NAME…: TERM to those that run; stop NAME [SECONDS]: TERM, wait, then KILL.
ask_to_stop() {
  local name pid started
  for name in "$@"; do alive "$name" && read -r pid started < "$pids/$name" && kill "$pid"; done 2>/dev/null || true
}
stop() {
  local name=$1 seconds=${2:-10} pid started tick
  if alive "$name"; then
    read -r pid started < "$pids/$name"; kill "$pid" 2>/dev/null || true
    for tick in $(seq $((seconds * 10))); do alive "$name" || break; sleep 0.1; done
    if alive "$name"; then kill -9 "$pid" 2>/dev/null || true; sleep 0.3; fi
  fi
  rm -f "$pids/$name"
}
# wait_for SECONDS WHAT COMMAND…: polls; on failure shows the command's last output and the logs named in $log_tails.
wait_for() {
  local limit=$1 what=$2 end; shift 2
  end=$(($(date +%s) + limit))
  until "$@" > "$logs/.probe" 2>&1; do
    [ "$(date +%s)" -lt "$end" ] || { cat "$logs/.probe" >&2; die "no $what after $limit s"; }
    sleep 0.2
  done
  say "$what"
}
