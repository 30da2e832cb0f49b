"""python -m hack.cluster up [--kueue] [--network-policy] | down [--purge] | status | kubeconfig"""

import argparse
import sys

from . import cluster
from .errors import ClusterError


def main() -> int:
    parser = argparse.ArgumentParser(prog="hack.cluster")
    verbs = parser.add_subparsers(dest="verb", required=True)
    up = verbs.add_parser("up", help="start the embedded cluster, or what is missing of it")
    up.add_argument("--kueue", action="store_true", help="with Kueue, which is built at the first time")
    up.add_argument("--network-policy", action="store_true", help="with NetworkPolicies enforced, by kube-router")
    down = verbs.add_parser("down", help="stop it and leave nothing behind")
    down.add_argument("--purge", action="store_true", help="remove the stored container images too")
    verbs.add_parser("status", help="what runs, at which versions and addresses")
    verbs.add_parser("kubeconfig", help="print the path of the kubeconfig")
    arguments = parser.parse_args()
    try:
        if arguments.verb == "up":
            cluster.up(kueue=arguments.kueue, network_policy=arguments.network_policy)
        elif arguments.verb == "down":
            cluster.down(arguments.purge)
        elif arguments.verb == "status":
            cluster.status()
        else:
            cluster.kubeconfig()
    except ClusterError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
