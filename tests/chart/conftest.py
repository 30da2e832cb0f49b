"""The control plane of the operator's tests."""

from tests.operator.conftest import namespace, plane

__all__ = ["namespace", "plane"]
