#!/bin/bash
# make test-long: learning runs over seeds and drills that take the cluster down. What passed on the same code is not run
# again, so that a run that was cut short goes on (FRESH=1: all of it).
set -euo pipefail
cd "$(dirname "$0")/.."
resumed=(-p tests.resumed)
[ -z "${FRESH:-}" ] || resumed=()
.venv/bin/python -m pytest tests -m long "${resumed[@]}" "$@" || { code=$?; [ "$code" = 5 ] || exit "$code"; echo "nothing is left to run"; }
