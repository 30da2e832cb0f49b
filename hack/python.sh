#!/bin/bash
# Prints a Python that the project runs on (3.11 or 3.12); $PYTHON names one to prefer.
set -euo pipefail

for candidate in "${PYTHON:-}" python3.11 python3.12 python3; do
  [ -n "$candidate" ] || continue
  found=$("$candidate" -c 'import sys; sys.version_info[:2] in ((3, 11), (3, 12)) and print(sys.executable)' 2>/dev/null) || continue
  [ -n "$found" ] && { echo "$found"; exit 0; }
done
echo "no Python 3.11 or 3.12 found: install one (Debian 12: apt-get install python3-venv) or name it by PYTHON=/path/to/python3.11" >&2
exit 1
