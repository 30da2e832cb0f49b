#!/bin/bash
# make test-faults: named faults in real pods; writes docs/faults.md. ONLY=word takes those whose name holds it.
set -euo pipefail
cd "$(dirname "$0")/.."
exec .venv/bin/python -m pytest tests/e2e/test_faults.py tests/e2e/test_faults_alone.py -m long "$@"
