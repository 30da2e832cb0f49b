#!/bin/bash
# Prints the path of the pinned uv, installed by pip into the cache folder once.
set -euo pipefail

version=0.13.9
home=${XDG_CACHE_HOME:-$HOME/.cache}/simplerl/uv-$version
if [ ! -x "$home/bin/uv" ]; then
  python=$("$(dirname "$0")/python.sh")
  mkdir -p "$(dirname "$home")"
  exec 9>"$home.lock"
  flock -w 600 9 || { echo "timed out after 600 s: another process is installing uv (lock $home.lock)" >&2; exit 1; }
  if [ ! -x "$home/bin/uv" ]; then
    rm -rf "$home.new" "$home"
    "$python" -m venv "$home.new" ||
      { echo "$python cannot make a virtual environment: install its venv module (Debian: apt-get install python3-venv)" >&2; exit 1; }
    "$home.new/bin/python" -m pip install --quiet --disable-pip-version-check "uv==$version" >&2
    mv "$home.new" "$home" # uv itself is a plain binary: it may be moved
  fi
fi
echo "$home/bin/uv"
