"""The two images: dependencies built once for each set of them, the project's layer on top."""

import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from hack.cluster import commands, oci, places
from hack.cluster.errors import ClusterError

from . import base, builder, wheel

LAYOUTS = places.CACHE / "images"
KEPT_LAYOUTS = 2  # of each image: this one, and another clone's or branch's


@dataclass(frozen=True)
class Recipe:
    name: str
    requirements: str
    arguments: dict[str, str]
    folders: dict[str, Path]

    @property
    def dockerfile(self) -> Path:
        return builder.REPOSITORY / "images" / self.name / "Dockerfile"

    @property
    def layout(self) -> Path:
        """Of the dependencies: changes with whatever they are made from."""
        digest = hashlib.sha256(base.key().encode())
        digest.update(self.dockerfile.read_bytes())
        digest.update((builder.REPOSITORY / self.requirements).read_bytes())
        return LAYOUTS / f"{self.name}-dependencies-{digest.hexdigest()[:12]}"


def recipes() -> list[Recipe]:
    wheels = commands.run([builder.REPOSITORY / "hack/wheels.sh"], "finding PyTorch's CPU wheel").strip()
    kind = "trainer-cpu" if wheels and oci.architecture() == "amd64" else "trainer-pypi"
    folders = {"wheels": Path(wheels)} if kind == "trainer-cpu" else {}
    return [
        Recipe("operator", "requirements/operator.txt", {}, {}),
        Recipe("trainer", f"requirements/{kind}.txt", {"SET": kind}, folders),
    ]


def dependencies(recipe: Recipe) -> oci.Image:
    if not recipe.layout.is_dir():
        with places.locked("images", "building images", seconds=3600):
            if not recipe.layout.is_dir():
                build_dependencies(recipe)
    os.utime(recipe.layout)
    return oci.read_layout(recipe.layout)


def build_arguments(recipe: Recipe) -> dict[str, str]:
    """The bases, made where they are not there, and what the recipe adds."""
    compiler = {"BUILD_BASE": base.ensure(base.COMPILER)} if recipe.name == "trainer" else {}
    return {"BASE": base.ensure(), **compiler, **recipe.arguments}


def build_dependencies(recipe: Recipe) -> None:
    if os.geteuid() != 0:
        raise ClusterError(
            "building images needs root here: run the same command as root, or build with docker (images/*/Dockerfile)"
        )
    builder.prepare()
    arguments = build_arguments(recipe)
    commands.say(f"building the {recipe.name} image's dependencies from {recipe.requirements}")
    name = f"localhost/simplerl-{recipe.name}:dependencies"
    builder.build(recipe.dockerfile, name, target="dependencies", arguments=arguments, folders=recipe.folders)
    commands.say(f"saving the {recipe.name} image's dependencies")
    work = recipe.layout.with_name(f".{recipe.layout.name}")
    shutil.rmtree(work, ignore_errors=True)
    work.parent.mkdir(parents=True, exist_ok=True)
    builder.save(name, work)
    work.rename(recipe.layout)
    builder.forget(name)
    others = sorted(LAYOUTS.glob(f"{recipe.name}-dependencies-*"), key=os.path.getmtime)
    for old in others[:-KEPT_LAYOUTS]:
        shutil.rmtree(old, ignore_errors=True)


def images() -> dict[str, oci.Image]:
    made = {recipe.name: dependencies(recipe) for recipe in recipes()}
    layer = wheel.cached_layer()
    return {name: image.with_layer(layer, "the project's wheel") for name, image in made.items()}
