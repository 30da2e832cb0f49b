"""The images of this tree in the running embedded cluster."""

from hack.cluster import commands, image_store, node, oci
from hack.cluster.errors import ClusterError

from . import build


def build_and_import() -> tuple[str, str]:
    """The names of the operator's and the trainer's image, which stand for this content of the tree for ever."""
    if node.init_pid() is None:
        raise ClusterError("no embedded cluster runs to import the images into: start it by `make cluster-up`")
    names = {}
    for name, image in build.images().items():
        content, moving = names_of(name, image)
        if image_store.ensure(image, content, moving):
            commands.say(f"imported {content} (also {moving})")
        names[name] = content
    return names["operator"], names["trainer"]


def names_of(name: str, image: oci.Image) -> tuple[str, str]:
    """`dev` moves with the code, the other does not: a pod that names it runs this code or none."""
    repository = f"simplerl.local/{name}"
    return f"{repository}:dev-{image.digest.removeprefix('sha256:')[:12]}", f"{repository}:dev"
