"""The process that holds a run in Weights & Biases: `python -m simplerl_trainer.progress.wandb_process`.

It reads JSON lines: the run's settings, then figures with their `step`, last `{"exit_code": 0}`; it answers the first
and the last. The key comes by the environment, never in a message.
"""

import json
import os
import sys
import threading
from typing import Any, TextIO

_ORPHAN_SECONDS = 60.0
"""How long the last figures may take once the driver is gone."""


def main() -> None:
    """Serves one run."""
    outward = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the client prints is no message
    setup = json.loads(sys.stdin.readline())
    try:
        run = _start(setup)
    except Exception as e:  # noqa: BLE001 (the client has many errors; the driver names this one in its log)
        _say(outward, state="failed", why=f"{type(e).__name__}: {e}")
        os._exit(1)  # the client's own threads would wait for its server
    _say(outward, state="ready")
    exit_code = 1
    for text in sys.stdin:
        line = json.loads(text)
        if "exit_code" in line:
            exit_code = line["exit_code"]
            break
        run.log(line)
    else:
        threading.Timer(_ORPHAN_SECONDS, os._exit, [1]).start()
    run.finish(exit_code=exit_code)
    _say(outward, state="finished")
    os._exit(0)


def _start(setup: dict[str, Any]) -> Any:
    import wandb

    if setup["mode"] == "online" and not wandb.login(verify=True, prompt=False):
        raise PermissionError("there is no key: set tracking.wandb.apiKeySecretRef, or the variable WANDB_API_KEY")
    run = wandb.init(
        id=setup["id"],
        name=setup["name"],
        project=setup["project"],
        entity=setup["entity"],
        mode=setup["mode"],
        dir=setup["folder"],
        config=setup["config"],
        resume="allow",
        # what the client would read by itself: our log, our machine's names, our code
        settings=wandb.Settings(console="off", silent=True, disable_git=True, save_code=False, x_disable_meta=True),
    )
    # steps that a resumed run takes again would be refused as W&B's own steps
    run.define_metric("*", step_metric="step")
    return run


def _say(outward: TextIO, **answer: str) -> None:
    outward.write(json.dumps(answer) + "\n")
    outward.flush()


if __name__ == "__main__":
    main()
