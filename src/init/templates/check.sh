#!/bin/sh
# Validates the Katalog, and compares the rendered children of each sample with expected/. UPDATE=1 rewrites expected/.
set -eu
cd "$(dirname "$0")"
ork=${ORK:-ork}

"$ork" validate --strict .
for sample in samples/*.yaml; do
  expected=expected/${sample#samples/}
  made=$("$ork" render -k katalog.yaml --cr "$sample")
  if [ -n "${UPDATE:-}" ]; then
    mkdir -p expected
    printf '%s\n' "$made" > "$expected"
  fi
  printf '%s\n' "$made" | diff -u "$expected" -
done
