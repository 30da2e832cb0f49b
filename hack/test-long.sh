#!/bin/bash
# make test-long: learning runs over seeds and drills that take the cluster down. What passed on the same code is not run
# again, so that a run that was cut short goes on (FRESH=1: all of it).
set -euo pipefail
cd "$(dirname "$0")/.."
resumed=(-p tests.resumed)
[ -z "${FRESH:-}" ] || resumed=()
code=0
.venv/bin/python -m pytest tests -m long "${resumed[@]}" "$@" || code=$?
if [ "$code" = 5 ]; then echo "nothing is left to run"; code=0; fi # pytest's word for no tests
exit "$code"
