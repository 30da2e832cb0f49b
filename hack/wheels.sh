#!/bin/bash
# Prints the folder that holds PyTorch's CPU wheel: $SIMPLERL_WHEELS, or ../shared/wheels beside the clone; nothing if there is none.
set -euo pipefail

folder=${SIMPLERL_WHEELS:-$(dirname "$0")/../../shared/wheels}
if compgen -G "$folder/torch-*+cpu-*.whl" >/dev/null; then
  cd "$folder" && pwd
elif [ -n "${SIMPLERL_WHEELS:-}" ]; then
  echo "SIMPLERL_WHEELS=$SIMPLERL_WHEELS holds no torch-*+cpu-*.whl: name the folder of PyTorch's CPU wheel, or unset it to use PyPI's torch" >&2
  exit 1
fi
