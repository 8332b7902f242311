#!/usr/bin/env bash
# Fetches and builds the real parts that the tests and the demo run on, into a cache outside the checkout.
#
#   setup.sh kubernetes       etcd, kube-apiserver and kubectl, from the Go module in kubernetes/
#   setup.sh kafka VERSION…   Kafka's jars, from kafka/VERSION/pom.xml, and the Java oracle compiled for them
#   setup.sh demo             what the demo needs
#   setup.sh all              everything that has a manifest here
#   setup.sh deny             cargo-deny
#   setup.sh path PART        prints where a part stands: kubernetes, kafka VERSION, oracle VERSION or deny
#   setup.sh where            prints the cache's folder
#
# KAFKA_FEATURES_CACHE moves the cache. Each part stands in a folder named by its version and a hash of what it is
# made from, and appears there only when it is whole, so an interrupted run leaves nothing that is taken for it.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=$(realpath -m "${KAFKA_FEATURES_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kafka-features-operator}")
deny_version=0.20.2
demo_kafka="4.0.2 4.4.0"

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }
need() { # COMMAND WHAT-TO-INSTALL
  command -v "$1" >/dev/null 2>&1 || fail "$1 is missing: install $2"
}
need_java() {
  need mvn "Maven 3.8 or newer"; need java "a Java runtime, 17 to 23"; need javac "a JDK, 17 to 23"
  local major; major=$(java -version 2>&1 | sed -nE 's/.*version "([0-9]+).*/\1/p')
  # the oracle catches the exits of Kafka's tools by a security manager, which Java 24 no longer has
  [ "${major:-0}" -ge 17 ] && [ "$major" -le 23 ] || fail "java is of version ${major:-unknown}: install a JDK, 17 to 23"
}
# strace ends processes at chosen system calls; installed where this may be done and it is missing
need_strace() {
  command -v strace >/dev/null 2>&1 && return
  if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
    say "installing strace"
    apt-get install -y -q strace >&2 || { apt-get update -q >&2 && apt-get install -y -q strace >&2; } || true
  fi
  need strace "strace, from your distribution's packages"
}
need_kubernetes() { need go "Go $(awk '$1 == "go" { print $2 }' "$here/kubernetes/go.mod") or newer"; }
need_cargo() { need cargo "Rust 1.89 or newer, by rustup"; }
digest() { cat "$@" | sha256sum | cut -c1-12; }

# make_part FOLDER MAKER ARGUMENT…: calls MAKER TEMPORARY-FOLDER ARGUMENT… unless FOLDER is there, one at a time
make_part() {
  local part=$1 maker=$2; shift 2
  [ -d "$part" ] && return
  mkdir -p "$cache/locks"
  (
    flock 9
    [ -d "$part" ] && exit 0
    local begun=$SECONDS temporary; temporary=$part.making
    rm -rf "$temporary"; mkdir -p "$temporary"
    say "making ${part#"$cache"/}"
    # a subshell of its own and no condition: inside one, bash ignores errexit
    set +e
    (set -e; "$maker" "$temporary" "$@") >"$temporary/log" 2>&1
    local status=$?
    set -e
    if [ $status -ne 0 ]; then
      tail -n 15 "$temporary/log" >&2
      fail "could not make ${part#"$cache"/}; the whole output is in $temporary/log"
    fi
    mv "$temporary" "$part"
    say "made ${part#"$cache"/} in $((SECONDS - begun)) s"
  ) 9>"$cache/locks/$(basename "$part")"
}

kubernetes_part() {
  local version; version=$(awk '$1 == "k8s.io/kubernetes" { print substr($2, 2) }' "$here/kubernetes/go.mod")
  echo "$cache/kubernetes-$version-$(digest "$here/kubernetes/go.mod" "$here/kubernetes/go.sum")"
}
make_kubernetes() {
  local out=$1 version minor flags path
  version=$(basename "$(kubernetes_part)" | cut -d- -f2); minor=$(echo "$version" | cut -d. -f2)
  flags="-s -w"
  for path in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    flags="$flags -X $path.gitVersion=v$version -X $path.gitMajor=1 -X $path.gitMinor=$minor"
  done
  cd "$here/kubernetes"
  export GOFLAGS="-buildvcs=false -mod=readonly" GOTOOLCHAIN=local CGO_ENABLED=0
  nice go build -trimpath -ldflags "-s -w" -o "$out/etcd" go.etcd.io/etcd/server/v3
  nice go build -trimpath -ldflags "$flags" -o "$out/kube-apiserver" k8s.io/kubernetes/cmd/kube-apiserver
  nice go build -trimpath -ldflags "$flags" -o "$out/kubectl" k8s.io/kubernetes/cmd/kubectl
}

kafka_part() { echo "$cache/kafka-$1-$(digest "$here/kafka/$1/pom.xml")"; }
make_kafka() {
  nice mvn -q -B -ntp -f "$here/kafka/$2/pom.xml" dependency:copy-dependencies -DoutputDirectory="$1"
}

oracle_part() { echo "$cache/oracle-$1-$(digest "$here/kafka/$1/pom.xml" "$here"/oracle/*.java)"; }
make_oracle() { nice javac -nowarn -cp "$(kafka_part "$2")/*" -d "$1" "$here"/oracle/*.java; }

make_deny() { nice cargo install --locked --quiet --root "$1" cargo-deny --version "$deny_version"; }

kafka() {
  local version
  for version in "$@"; do
    [ -f "$here/kafka/$version/pom.xml" ] || fail "there is no manifest for Kafka $version in tests/testbed/kafka/"
    make_part "$(kafka_part "$version")" make_kafka "$version"
    make_part "$(oracle_part "$version")" make_oracle "$version"
  done
}
kubernetes() { make_part "$(kubernetes_part)" make_kubernetes; }

need flock util-linux
need setpriv util-linux
case ${1:-all} in
  kubernetes) need_kubernetes; kubernetes ;;
  kafka) shift; need_java; kafka "$@" ;;
  demo) need_cargo; need_kubernetes; need_java; kubernetes; kafka $demo_kafka ;;
  all) need_cargo; need_kubernetes; need_java; need_strace; kubernetes; kafka $(ls "$here/kafka") ;;
  deny) need_cargo; make_part "$cache/cargo-deny-$deny_version" make_deny ;;
  path)
    case ${2:-} in
      kubernetes) kubernetes_part ;;
      kafka) kafka_part "$3" ;;
      oracle) oracle_part "$3" ;;
      deny) echo "$cache/cargo-deny-$deny_version/bin/cargo-deny" ;;
      *) fail "unknown part ${2:-}: kubernetes, kafka VERSION, oracle VERSION or deny" ;;
    esac ;;
  where) echo "$cache" ;;
  *) fail "unknown command $1: kubernetes, kafka VERSION, demo, all, deny, path or where" ;;
esac
