"""A real cluster with KubeRay and the operator from this tree, as `make demo` makes it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hack.demo import install, target, volumes

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Installed:
    """The cluster and the images that its operator was installed with."""

    cluster: target.Target
    operator_image: str
    trainer_image: str


@pytest.fixture(scope="session")
def installed() -> Iterator[Installed]:
    cluster = target.find()
    operator_image, trainer_image = install.images(cluster)
    install.operator(cluster, operator_image, trainer_image)
    cluster.run("removing earlier jobs", "delete", "simplerljobs", "--all", "-n", "default", seconds=120)
    volumes.claim(cluster, "tiny")
    yield Installed(cluster, operator_image, trainer_image)
    cluster.run("removing the jobs", "delete", "simplerljobs", "--all", "-n", "default", seconds=120)
