"""The operator in the cluster, from this tree's chart and images."""

import os
from pathlib import Path

from hack.cluster import commands
from hack.cluster.errors import ClusterError
from hack.demo.target import Target

ROOT = Path(__file__).parents[2]
NAMESPACE = "simplerl-system"
RELEASE = "simplerl"


def images(target: Target) -> tuple[str, str]:
    """Names of the operator's and the trainer's image, which the cluster can start."""
    if target.embedded:
        from images import dev

        return dev.build_and_import()
    names = os.environ.get("SIMPLERL_OPERATOR_IMAGE"), os.environ.get("SIMPLERL_TRAINER_IMAGE")
    if names[0] is None or names[1] is None:
        raise ClusterError(
            "CLUSTER=current needs images that the cluster can pull: build images/operator and images/trainer, push "
            "them, and name them by SIMPLERL_OPERATOR_IMAGE and SIMPLERL_TRAINER_IMAGE"
        )
    return names[0], names[1]


def operator(target: Target, operator_image: str, trainer_image: str) -> None:
    """Installs or upgrades the chart and waits until the operator is there."""
    commands.run(
        [
            target.helm, "upgrade", "--install", RELEASE, str(ROOT / "charts/simplerl-operator"),
            "--namespace", NAMESPACE, "--create-namespace",
            "--set", f"image={operator_image}", "--set", f"trainerImage={trainer_image}",
            "--wait", "--timeout", "180s",
        ],
        "installing the chart",
        seconds=200,
        environment=target.environment(),
    )  # fmt: skip
