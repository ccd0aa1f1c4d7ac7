#!/bin/sh
# Validates the Katalog, and compares its definition with crd.yaml and the rendered children of each sample with expected/. UPDATE=1
# rewrites these files.
set -eu
cd "$(dirname "$0")"
ork=${ORK:-ork}

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
  made=$("$ork" render -k katalog.yaml --cr "$sample")
  if [ -n "${UPDATE:-}" ]; then
    mkdir -p expected
    printf '%s\n' "$made" > "$expected"
  fi
  printf '%s\n' "$made" | diff -u "$expected" -
done
