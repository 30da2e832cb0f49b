"""The contract of SimpleRL: the `SimpleRLJob` object, the plan made from it, and the documents that its parts exchange.

Nothing here imports more than pydantic, the YAML loader and the standard library, so that a launcher, the operator
and the trainer read the same models.
"""

__version__ = "0.1.0"

GROUP = "simplerl.io"
VERSION = "v1alpha1"
KIND = "SimpleRLJob"
PLURAL = "simplerljobs"
API_VERSION = f"{GROUP}/{VERSION}"
