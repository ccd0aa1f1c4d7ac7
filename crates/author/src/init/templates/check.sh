#!/bin/sh
# Validates the Katalog, and compares its definition with crd.yaml and the rendered children of each sample with expected/. UPDATE=1
# rewrites these files. A hook must keep its contract.
set -eu
cd "$(dirname "$0")"
ork=${ORK:-ork}

if [ -f hook/build.sh ] && [ ! -f hook/hook.wasm ]; then
  hook/build.sh
fi
if [ -f hook.py ]; then
  log=$(mktemp)
  ./hook.py > "$log" &
  trap 'kill $!; rm -f "$log"' EXIT
  until grep -q listening "$log"; do
    kill -0 $!
    sleep 0.1
  done
fi
"$ork" validate --strict .
if grep -q '^      schema:' katalog.yaml; then
  definition=$("$ork" generate crd -k katalog.yaml)
  if [ -n "${UPDATE:-}" ]; then
    printf '%s\n' "$definition" > crd.yaml
  fi
  printf '%s\n' "$definition" | diff -u crd.yaml -
fi
for sample in samples/*.yaml; do
  expected=expected/${sample#samples/}
  # The answers of hooks that are servers.
  set --
  if [ -f "answers/${sample#samples/}" ]; then
    set -- --external "answers/${sample#samples/}"
  fi
  made=$("$ork" render -k katalog.yaml --cr "$sample" "$@")
  if [ -n "${UPDATE:-}" ]; then
    mkdir -p expected
    printf '%s\n' "$made" > "$expected"
  fi
  printf '%s\n' "$made" | diff -u "$expected" -
  if grep -q '^          - name: workers$' katalog.yaml; then
    "$ork" hook test -k katalog.yaml --cr "$sample" --hook workers
  fi
done
