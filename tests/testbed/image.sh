#!/usr/bin/env bash
# Makes an image, as an OCI layout in a tar, from folders; the same folders make the same bytes.
#
#   image.sh OUT.tar NAME [--layer FOLDER]… [--user USER] [--env NAME=VALUE]… [-- COMMAND ARGUMENT…]
set -euo pipefail
out=$(realpath -m "$1") name=$2; shift 2
layers=(); user=""; env=("PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"); command=()
while [ $# -gt 0 ]; do
  case $1 in
    --layer) layers+=("$2"); shift 2 ;;
    --user) user=$2; shift 2 ;;
    --env) env+=("$2"); shift 2 ;;
    --) shift; command=("$@"); break ;;
    *) echo "image.sh: unknown argument $1" >&2; exit 1 ;;
  esac
done

strings() { # a JSON list of strings
  local list="" text
  for text in "$@"; do text=${text//\\/\\\\}; list="$list,\"${text//\"/\\\"}\""; done
  echo "[${list#,}]"
}
work=$(mktemp -d "$out.XXXXXX"); trap 'rm -rf "$work"' EXIT
mkdir -p "$work/blobs/sha256"
pack() { tar --format=gnu --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -C "$1" -cf "$2" .; }
blob() { # FILE TYPE: moves a file among the blobs and prints its descriptor, without the closing brace
  local sum size; sum=$(sha256sum "$1" | cut -d' ' -f1); size=$(stat -c %s "$1")
  mv "$1" "$work/blobs/sha256/$sum"
  printf '{"mediaType":"application/vnd.oci.image.%s","digest":"sha256:%s","size":%s' "$2" "$sum" "$size"
}

contents=""; diffs=()
for layer in "${layers[@]}"; do
  pack "$layer" "$work/layer"
  diffs+=("sha256:$(sha256sum "$work/layer" | cut -d' ' -f1)")
  contents="$contents,$(blob "$work/layer" layer.v1.tar)}"
done
architecture=$(dpkg --print-architecture)
printf '{"created":"1970-01-01T00:00:00Z","architecture":"%s","os":"linux","config":{"User":"%s","Env":%s,"Cmd":%s},"rootfs":{"type":"layers","diff_ids":%s}}' \
  "$architecture" "$user" "$(strings "${env[@]}")" "$(strings "${command[@]}")" "$(strings "${diffs[@]}")" >"$work/config"
printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":%s},"layers":[%s]}' \
  "$(blob "$work/config" config.v1+json)" "${contents#,}" >"$work/manifest"
printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[%s,"platform":{"architecture":"%s","os":"linux"},"annotations":{"io.containerd.image.name":"%s","org.opencontainers.image.ref.name":"%s"}}]}' \
  "$(blob "$work/manifest" manifest.v1+json)" "$architecture" "$name" "${name##*:}" >"$work/index.json"
printf '{"imageLayoutVersion":"1.0.0"}' >"$work/oci-layout"
pack "$work" "$out.made"
mv "$out.made" "$out"
