#!/bin/sh
# Installs `ork` from a release. Nothing is put in place before its checksum is verified.
#
#   curl -fsSL RELEASES/latest/install.sh | sh
#
# ORK_VERSION      version to install, such as 0.1.0 (default: the latest)
# ORK_INSTALL_DIR  folder of the program (default: /usr/local/bin if it is writable, else ~/.local/bin)
# ORK_BASE_URL     address of the files of a release, for mirrors; required if this script is not from a published release
set -eu

# The folder of releases, with a folder for each: `make release RELEASES=…` writes it.
releases=

fail() { printf 'install.sh: %s\n' "$*" >&2; exit 1; }

main() {
  [ "$(uname -s)" = Linux ] || fail "there are releases for Linux only; build from source with cargo"
  case $(uname -m) in
    x86_64 | amd64) architecture=amd64 ;;
    aarch64 | arm64) architecture=arm64 ;;
    *) fail "there is no release for $(uname -m); build from source with cargo" ;;
  esac
  if [ -z "$releases" ]; then default=
  elif [ -n "${ORK_VERSION:-}" ]; then default=$releases/v${ORK_VERSION#v}
  else default=$releases/latest; fi
  base=${ORK_BASE_URL:-$default}
  [ -n "$base" ] || fail "this script does not know where releases are published: set ORK_BASE_URL to the address of the files of one (a folder: file:///path/to/dist)"
  if [ -n "${ORK_INSTALL_DIR:-}" ]; then folder=$ORK_INSTALL_DIR
  elif [ -w /usr/local/bin ]; then folder=/usr/local/bin
  else folder=$HOME/.local/bin; fi
  command -v curl >/dev/null || fail "curl is missing"
  if command -v sha256sum >/dev/null; then sum=sha256sum
  elif command -v shasum >/dev/null; then sum='shasum -a 256'
  else fail "sha256sum is missing: the download cannot be verified"; fi

  mkdir -p "$folder"
  # In the target folder, so that the last step is one rename.
  work=$(mktemp -d "$folder/.ork-XXXXXX")
  trap 'rm -rf "$work"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  program=ork-linux-$architecture
  for file in SHA256SUMS "$program"; do
    curl --fail --silent --show-error --location --proto '=https,file' --output "$work/$file" "$base/$file" || fail "cannot download $base/$file"
  done
  wanted=$(awk -v name="$program" '$2 == name || $2 == "*" name { print $1 }' "$work/SHA256SUMS")
  [ -n "$wanted" ] || fail "SHA256SUMS has no checksum of $program"
  found=$($sum "$work/$program" | cut -d ' ' -f 1)
  [ "$wanted" = "$found" ] || fail "the checksum of $program is $found, expected $wanted: nothing was installed"
  chmod 755 "$work/$program"
  mv -f "$work/$program" "$folder/ork"
  printf 'installed %s/ork\n' "$folder"
  case :$PATH: in *":$folder:"*) ;; *) printf '%s is not in $PATH\n' "$folder" ;; esac
}

# Called last, so that an interrupted download of this script runs nothing.
main
