"""What a list of metadata alone tells of an object."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Listed:
    """One object."""

    namespace: str
    name: str
    uid: str
    version: str
    """Its resourceVersion."""


def read(document: Mapping[str, Any]) -> Listed:
    """The object in an item of a PartialObjectMetadataList."""
    metadata = document["metadata"]
    return Listed(metadata.get("namespace", ""), metadata["name"], metadata["uid"], metadata["resourceVersion"])
