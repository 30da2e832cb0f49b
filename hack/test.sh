#!/bin/bash
# make test: what CI runs. Lint, generated files, unit and integration tests, then the whole life of a job in real pods.
set -uo pipefail
cd "$(dirname "$0")/.."
results=$(mktemp -d)
others=
trap '[ -z "$others" ] || kill "$others" 2>/dev/null; rm -rf "$results"' EXIT
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

tests() { # name argument...: runs tests and leaves their results in a file
  local name=$1
  shift
  exec .venv/bin/python -m pytest -m "not long" --junitxml="$results/$name.xml" "$@"
}
trainer() { (tests trainer tests/trainer); }
e2e() { (tests e2e tests/e2e); }
ended() { # waits for the tests that were begun beside others
  local code
  wait "$others"
  code=$?
  others=
  cat "$results/others.txt"
  return "$code"
}

step lint make lint
step "generated files" generated
# the trainer's tests compute; the others wait for API servers most of their time
(tests others tests --ignore=tests/trainer --ignore=tests/e2e) >"$results/others.txt" 2>&1 &
others=$!
step "the trainer's tests" trainer
step "all other tests but those in real pods, begun beside the trainer's" ended
step "a job's life in real pods" e2e

.venv/bin/python hack/counts.py "$results"/*.xml
[ "${#failed[@]}" = 0 ] || { printf 'failed: %s\n' "${failed[@]}"; exit 1; }
