"""python -m hack.demo [FILE] [--claim NAME[=CONTENT]]... [--timeout SECONDS]"""

import argparse
import sys
import time
from pathlib import Path

from hack.cluster import commands
from hack.cluster.errors import ClusterError
from hack.demo import follow, install, target, volumes

from simplerl_api import yaml12


def main() -> int:
    parser = argparse.ArgumentParser(prog="hack.demo")
    parser.add_argument("file", nargs="?", type=Path, default=install.ROOT / "examples/tiny.yaml")
    parser.add_argument("--claim", action="append", default=[], metavar="NAME[=CONTENT]")
    parser.add_argument("--timeout", type=float, default=1500)
    arguments = parser.parse_args()
    try:
        return demo(arguments.file, arguments.claim or ["tiny"], arguments.timeout)
    except ClusterError as error:
        print(error, file=sys.stderr)
        return 1


def demo(file: Path, claims: list[str], seconds: float) -> int:
    """Runs one job file to its end; 0 where it Succeeded."""
    cluster = target.find()
    operator_image, trainer_image = install.images(cluster)
    commands.say(f"images {operator_image} and {trainer_image}")
    install.operator(cluster, operator_image, trainer_image)
    commands.say("the operator is installed")
    name = yaml12.load_file(file)["metadata"]["name"]
    cluster.run(f"removing an earlier job {name}", "delete", "simplerljobs", name, "--ignore-not-found", seconds=120)
    for claim in claims:
        claim_name, _, content = claim.partition("=")
        volumes.claim(cluster, claim_name, content=Path(content) if content else None)
    start = time.monotonic()
    print(
        f"$ kubectl apply -f {file.relative_to(install.ROOT) if file.is_relative_to(install.ROOT) else file}",
        flush=True,
    )
    print(cluster.run("applying the job", "apply", "-f", str(file)), end="", flush=True)
    job = follow.until_done(cluster, name, seconds)
    follow.report(job)
    commands.say(f"{time.monotonic() - start:.0f} s from kubectl apply")
    if cluster.embedded:
        print(f"look around: export KUBECONFIG={cluster.kubeconfig} PATH=$PATH:{target.programs_folder()}")
    return 0 if job["status"]["phase"] == "Succeeded" else 1


if __name__ == "__main__":
    sys.exit(main())
