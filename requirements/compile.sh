#!/bin/bash
# Compiles the pinned sets from pyproject.toml: exact versions with hashes, without index addresses.
# trainer-cpu.txt comes first and needs the folder of PyTorch's CPU wheel; the others agree with it wherever they share a package.
set -euo pipefail
cd "$(dirname "$0")/.."

uv=$(hack/uv.sh)
wheels=$(hack/wheels.sh)
[ -n "$wheels" ] || { echo "no folder with PyTorch's CPU wheel: name one by SIMPLERL_WHEELS=/path (trainer-cpu.txt pins its hash)" >&2; exit 1; }
agree=$(mktemp)
trap 'rm -f "$agree"' EXIT

# manylinux_2_31 is the oldest platform that llguidance, a part of vLLM, has a wheel for; Debian 12 is 2_36
set_of() { # name, then more arguments
  local name=$1; shift
  "$uv" pip compile pyproject.toml --quiet --python-version 3.11 --python-platform x86_64-manylinux_2_31 \
    --generate-hashes --no-emit-index-url --no-header --no-annotate --output-file "requirements/$name.txt" "$@"
  echo "requirements/$name.txt: $(grep -c '==' "requirements/$name.txt") packages"
}

cpu=(--extra trainer-cpu --override requirements/overrides.txt)
set_of trainer-cpu "${cpu[@]}" --find-links "$wheels"
grep '==' requirements/trainer-cpu.txt | grep -v '^torch==' | sed 's/ *\\$//' >"$agree"
set_of trainer-pypi "${cpu[@]}" --override requirements/overrides-pypi.txt --constraint "$agree"
set_of operator --extra operator --constraint "$agree"
set_of dev --extra dev --constraint "$agree" --constraint requirements/operator.txt
set_of trainer-cuda --extra trainer-cuda --override requirements/overrides-cuda.txt
