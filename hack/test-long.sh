#!/bin/bash
# make test-long: learning runs over seeds and drills that take the cluster down.
set -euo pipefail
cd "$(dirname "$0")/.."
exec .venv/bin/python -m pytest tests -m long "$@"
