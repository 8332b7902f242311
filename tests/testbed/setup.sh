#!/usr/bin/env bash
# Fetches and builds the real parts that the tests and the demo run on, into a cache outside the checkout.
#
#   setup.sh kubernetes       etcd and one binary for all Kubernetes commands, from the Go module in kubernetes/
#   setup.sh node             what a node needs besides: CoreDNS, containerd, runc, CNI plugins, images; asks for root
#   setup.sh kafka VERSION…   Kafka's jars, from kafka/VERSION/pom.xml, and the Java oracle compiled for them
#   setup.sh image-kafka VERSION…  images of Kafka with a Java runtime and a shell
#   setup.sh demo             what the demo needs
#   setup.sh demo-pods        what the demo with pods needs
#   setup.sh all              everything that has a manifest here
#   setup.sh deny             cargo-deny
#   setup.sh path PART        prints where a part stands: kubernetes, node, kafka VERSION, oracle VERSION,
#                             image-kafka VERSION or deny
#   setup.sh where            prints the cache's folder
#
# KAFKA_FEATURES_CACHE moves the cache. Each part stands in a folder named by its version and a hash of what it is
# made from, and appears there only when it is whole, so an interrupted run leaves nothing that is taken for it.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=$(realpath -m "${KAFKA_FEATURES_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kafka-features-operator}")
deny_version=0.20.2
demo_kafka="4.0.2 4.4.0"
image_kafka="4.3.1 4.4.0"
# Debian's packages, unpacked and not installed: a node's programs and the libraries that they may find nowhere else
packages="busybox-static conntrack containerd containernetworking-plugins nftables runc
  libbtrfs0 libedit2 libjansson4 libmnl0 libnetfilter-conntrack3 libnfnetlink0 libnftables1 libnftnl11 libseccomp2 libxtables12"
# what Kafka uses of Java
java_modules=java.base,java.desktop,java.instrument,java.logging,java.management,java.management.rmi,java.naming,java.net.http
java_modules=$java_modules,java.rmi,java.scripting,java.security.jgss,java.security.sasl,java.sql,java.xml,jdk.crypto.ec,jdk.net
java_modules=$java_modules,jdk.security.auth,jdk.unsupported,jdk.zipfs

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
need_node() {
  [ "$(id -u)" -eq 0 ] || fail "root is missing: a node makes network namespaces and cgroups, run this as root"
  need apt-get "apt, on Debian or what derives from it"; need dpkg "dpkg, on Debian or what derives from it"
  need ip iproute2; need nsenter util-linux; need unshare util-linux; need tar "GNU tar"; need find findutils
}
need_images() { need jlink "a JDK, 17 to 23, with its jmods"; need ldd "libc-bin"; }
need_cargo() { need cargo "Rust 1.89 or newer, by rustup"; }
digest() { cat "$@" | sha256sum | cut -c1-12; }
# the same for the functions and variables that make a part
recipe() { declare -f "$@"; echo "$packages $java_modules"; }

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

# version_of MODULE FOLDER: the version that the folder's go.mod asks for
version_of() { awk -v module="$1" '$1 == "require" { $0 = $2 " " $3 } $1 == module { print substr($2, 2) }' "$here/$2/go.mod"; }
go_build() { # FOLDER OUT FLAGS PACKAGE
  (
    cd "$here/$1"
    export GOFLAGS="-buildvcs=false -mod=readonly" GOTOOLCHAIN=local CGO_ENABLED=0
    nice go build -trimpath -ldflags "-s -w $3" -o "$2" "$4"
  )
}

kubernetes_part() {
  local files; files=$(digest "$here"/kubernetes/{go.mod,go.sum,main.go})
  echo "$cache/kubernetes-$(version_of k8s.io/kubernetes kubernetes)-$files"
}
make_kubernetes() {
  local version minor flags="" path command
  version=$(version_of k8s.io/kubernetes kubernetes); minor=$(echo "$version" | cut -d. -f2)
  for path in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    flags="$flags -X $path.gitVersion=v$version -X $path.gitMajor=1 -X $path.gitMinor=$minor"
  done
  go_build kubernetes "$1/etcd" "" go.etcd.io/etcd/server/v3
  go_build kubernetes "$1/kubernetes" "$flags" .
  for command in kube-apiserver kube-controller-manager kube-scheduler kube-proxy kubelet kubectl; do
    ln -s kubernetes "$1/$command"
  done
}

node_part() { echo "$cache/node-$(digest "$here"/dns/{go.mod,go.sum,main.go} "$here/image.sh" <(recipe make_node))"; }
make_node() {
  local out=$1 root
  mkdir "$out/packages" "$out/debian"
  cd "$out/packages"
  apt-get download -q $packages || { apt-get update -q && apt-get download -q $packages; }
  for package in *.deb; do dpkg -x "$package" "$out/debian"; done
  rm -r "$out/packages"
  root=$out/images/coredns; mkdir -p "$root"
  go_build dns "$root/coredns" "" .
  "$here/image.sh" "$out/coredns.tar" localhost/coredns:1 --layer "$root" -- /coredns
  # a pod's network namespace is held by a container that does nothing
  root=$out/images/pause; mkdir -p "$root/bin"
  cp "$out/debian/bin/busybox" "$root/bin/"
  "$here/image.sh" "$out/pause.tar" localhost/pause:1 --layer "$root" -- /bin/busybox sleep infinity
  rm -r "$out/images"
}

# the layer that all images of Kafka begin with
java_part() { echo "$cache/java-$(digest <(recipe make_java))"; }
make_java() {
  local root=$1/root busybox file applet
  busybox=$(node_part)/debian/bin/busybox
  mkdir -p "$root"/{bin,data,dev,etc,opt,proc,sys,tmp,usr/bin}
  jlink --no-header-files --no-man-pages --strip-debug --compress=1 --add-modules "$java_modules" --output "$root/opt/java"
  ln -s /opt/java/bin/java "$root/usr/bin/java"
  # the libraries that it is linked with, where its loader looks for them
  for file in bin/java lib/server/libjvm.so lib/libjava.so lib/libnet.so lib/libnio.so lib/libzip.so; do
    ldd "$root/opt/java/$file"
  done | awk '$3 ~ /^\// { print $3 } $1 ~ /^\// { print $1 }' | grep -v "^$root" | sort -u |
    while read -r file; do cp -L --parents "$file" "$root"; done
  cp "$busybox" "$root/bin/busybox"
  for applet in $("$busybox" --list); do [ -e "$root/bin/$applet" ] || ln -s busybox "$root/bin/$applet"; done
  printf 'root:x:0:0::/:/bin/sh\nkafka:x:1000:1000::/:/bin/sh\n' >"$root/etc/passwd"
  printf 'root:x:0:\nkafka:x:1000:\n' >"$root/etc/group"
  echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
  chmod 1777 "$root/tmp" "$root/data"
}
image_kafka_part() {
  echo "$cache/image-kafka-$1-$(digest "$here/kafka/$1/pom.xml" "$here/image.sh" <(recipe make_java make_image_kafka))"
}
make_image_kafka() {
  mkdir -p "$1/root/opt/kafka/libs"
  cp "$(kafka_part "$2")"/*.jar "$1/root/opt/kafka/libs/"
  "$here/image.sh" "$1/kafka.tar" "localhost/kafka:$2" --layer "$(java_part)/root" --layer "$1/root" --user 1000 -- /bin/sh
  rm -r "$1/root"
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
node() { kubernetes; make_part "$(node_part)" make_node; }
image_kafka() {
  local version
  kafka "$@"
  make_part "$(node_part)" make_node
  make_part "$(java_part)" make_java
  for version in "$@"; do make_part "$(image_kafka_part "$version")" make_image_kafka "$version"; done
}

need flock util-linux
need setpriv util-linux
case ${1:-all} in
  kubernetes) need_kubernetes; kubernetes ;;
  node) need_kubernetes; need_node; node ;;
  kafka) shift; need_java; kafka "$@" ;;
  image-kafka) shift; need_kubernetes; need_java; need_node; need_images; image_kafka "$@" ;;
  demo) need_cargo; need_kubernetes; need_java; kubernetes; kafka $demo_kafka ;;
  demo-pods)
    need_cargo; need_kubernetes; need_java; need_node; need_images
    node; image_kafka $image_kafka ;;
  all)
    need_cargo; need_kubernetes; need_java; need_node; need_images; need_strace; need curl curl
    node; kafka $(ls "$here/kafka"); image_kafka $image_kafka ;;
  deny) need_cargo; make_part "$cache/cargo-deny-$deny_version" make_deny ;;
  path)
    case ${2:-} in
      kubernetes) kubernetes_part ;;
      kafka) kafka_part "$3" ;;
      oracle) oracle_part "$3" ;;
      node) node_part ;;
      image-kafka) image_kafka_part "$3" ;;
      deny) echo "$cache/cargo-deny-$deny_version/bin/cargo-deny" ;;
      *) fail "unknown part ${2:-}: kubernetes, node, kafka VERSION, oracle VERSION, image-kafka VERSION or deny" ;;
    esac ;;
  where) echo "$cache" ;;
  *) fail "unknown command $1: kubernetes, node, kafka VERSION, image-kafka VERSION, demo, demo-pods, all, deny, path or where" ;;
esac
