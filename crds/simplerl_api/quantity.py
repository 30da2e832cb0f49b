"""Kubernetes quantities (https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/)."""

import re
from decimal import Decimal

_FACTORS = {
    "m": Decimal("0.001"), "": Decimal(1), "k": Decimal(10**3), "M": Decimal(10**6), "G": Decimal(10**9),
    "T": Decimal(10**12), "Ki": Decimal(2**10), "Mi": Decimal(2**20), "Gi": Decimal(2**30), "Ti": Decimal(2**40),
}  # fmt: skip


def number(text: str) -> Decimal:
    """The number that a quantity stands for. Raises ValueError naming the text."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(m|k|M|G|T|Ki|Mi|Gi|Ti)?", text)
    if found is None:
        raise ValueError(f"{text!r} is not a quantity such as 500m or 16Gi")
    return Decimal(found[1]) * _FACTORS[found[2] or ""]
