"""The pods' preStop hook: asks the driver to drain, and waits until it has. It imports nothing but Python's own.

python -m simplerl_trainer.prestop [--seconds N]
"""

import argparse
import json
import os
import sys
import time
import urllib.error
import urllib.request
from http.client import HTTPException

from simplerl_api.progress import PORT, RunState

TOKEN_VARIABLE = "RAY_AUTH_TOKEN"
HEAD_VARIABLE = "FQ_RAY_IP"
"""KubeRay's variable in worker pods: the DNS name of the head's service."""
_WAIT_SECONDS = 5.0
"""One long poll."""


def drain(base: str, token: str, seconds: float) -> str:
    """Asks the driver at `base` to drain, and waits at most `seconds`; says how that ended. A driver that does not
    listen has ended, or has not begun: there is nothing to save."""
    bound = time.monotonic() + seconds
    try:
        _ask(base + "/control", token, json.dumps({"drain": True}).encode())
        since = 0
        while (left := bound - time.monotonic()) > 0:
            wait = min(_WAIT_SECONDS, left)
            document = json.loads(_ask(f"{base}/progress?since={since}&wait={wait:.1f}", token, None))
            if document.get("state") in (RunState.DRAINED, RunState.SUCCEEDED, RunState.FAILED):
                return str(document["state"])
            since = document.get("sequence", since)
    except (OSError, HTTPException, ValueError) as error:
        return f"the driver at {base} does not answer: {error}"
    return f"the driver at {base} has not drained within {seconds:.0f} s"


def _ask(url: str, token: str, body: bytes | None) -> bytes:
    request = urllib.request.Request(url, data=body, method="GET" if body is None else "PUT")
    request.add_header("Authorization", f"Bearer {token}")
    request.add_header("Content-Type", "application/json")
    # a proxy of the environment is not for traffic inside the cluster
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=_WAIT_SECONDS + 10) as response:
        answer: bytes = response.read()
        return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0, help="longest wait")
    given = parser.parse_args()
    head = os.environ.get(HEAD_VARIABLE) or "127.0.0.1"
    print(drain(f"http://{head}:{PORT}", os.environ.get(TOKEN_VARIABLE, ""), given.seconds), file=sys.stderr)


if __name__ == "__main__":
    main()
