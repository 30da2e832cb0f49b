"""References to keys of Secrets and ConfigMaps in the job's namespace."""

from typing import Annotated

from pydantic import Field

from simplerl_api.struct import Struct, Text

Key = Annotated[str, Field(pattern=r"^[-._a-zA-Z0-9]+$", max_length=253)]
"""A key of a Secret or ConfigMap."""


class SecretKeyRef(Struct):
    """A key of a Secret in the job's namespace."""

    name: Text
    """Name of the Secret."""
    key: Key
    """Its key, for example `token`."""


class ConfigMapKeyRef(Struct):
    """A key of a ConfigMap in the job's namespace."""

    name: Text
    """Name of the ConfigMap."""
    key: Key
    """Its key, for example `score.py`."""
