#!/bin/bash
# make test-gpu: the tests that need CUDA. GPUS=N refuses to run with fewer; tests that need more than there are are skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
wanted=${GPUS:-1}
[ -x "$(command -v "$python")" ] || { echo "$python is not there: name a Python with requirements/trainer-cuda.txt and dev.txt by PYTHON=..." >&2; exit 1; }
found=$("$python" -c 'import torch; print(torch.cuda.device_count())')
[ "$found" -ge "$wanted" ] || { echo "GPUS is $wanted and $python sees $found CUDA GPUs: use a machine that has them, or lower GPUS" >&2; exit 1; }
export PYTHONPATH=$PWD/crds:$PWD/operator:$PWD/trainer${PYTHONPATH:+:$PYTHONPATH}
exec "$python" -m pytest tests/gpu -m gpu "$@"
