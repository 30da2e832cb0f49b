#!/bin/bash
# make demo: a real Kubernetes, KubeRay and the operator come up, and examples/tiny.yaml trains in real pods.
set -euo pipefail
cd "$(dirname "$0")/.."
exec .venv/bin/python -m hack.demo examples/tiny.yaml --claim tiny
