#!/bin/bash
# make test: what CI runs. Lint, generated files, unit and integration tests, then the whole life of a job in real pods.
set -uo pipefail
cd "$(dirname "$0")/.."
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
failed=()
step() { # name command...: runs one part, and says how long it took
  local name=$1 start=$SECONDS
  shift
  echo "== $name"
  if "$@"; then echo "== $name: ok, $((SECONDS - start)) s"; else failed+=("$name"); echo "== $name: FAILED, $((SECONDS - start)) s"; fi
}

generated() {
  make generate >/dev/null && git diff --exit-code -- crds charts docs
}

step lint make lint
step "generated files" generated
step "unit and integration tests" .venv/bin/python -m pytest tests --ignore=tests/e2e -m "not long" --junitxml="$results/unit.xml"
step "a job's life in real pods" .venv/bin/python -m pytest tests/e2e -m "not long" --junitxml="$results/e2e.xml"

.venv/bin/python hack/counts.py "$results"/*.xml
[ "${#failed[@]}" = 0 ] || { printf 'failed: %s\n' "${failed[@]}"; exit 1; }
