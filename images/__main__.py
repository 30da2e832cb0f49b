"""python -m images build | dev"""

import argparse
import sys

from hack.cluster import commands, node
from hack.cluster.errors import ClusterError

from . import build, dev


def main() -> int:
    parser = argparse.ArgumentParser(prog="images")
    parser.add_argument("verb", choices=["build", "dev"], help="dev: the running cluster must take the images")
    arguments = parser.parse_args()
    try:
        if arguments.verb == "build" and node.init_pid() is None:
            build.images()
            commands.say("built and kept; `make cluster-up` and this again imports them")
        else:
            operator, trainer = dev.build_and_import()
            print(f"operator={operator}\ntrainer={trainer}")  # for scripts
    except ClusterError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
