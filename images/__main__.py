"""python -m images build | dev"""

import argparse
import sys

from hack.cluster.errors import ClusterError

from . import build


def main() -> int:
    parser = argparse.ArgumentParser(prog="images")
    parser.add_argument("verb", choices=["build", "dev"], help="dev: the running cluster must take the images")
    arguments = parser.parse_args()
    try:
        build.build(must_import=arguments.verb == "dev")
    except ClusterError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
