"""The operator's key, from which all jobs' tokens are made: made once, at run time, and kept in a Secret of its own."""

import base64
import secrets

from simplerl_operator.kinds import SECRET
from simplerl_operator.kubernetes_api import KubernetesApi, Refused

NAME = "simplerl-operator-key"
_FIELD = "key"
_BYTES = 32


async def ensure(api: KubernetesApi, namespace: str) -> bytes:
    """The key. Raises Refused where the Secret may be neither read nor made, ValueError where it holds no key."""
    found = await api.get(SECRET, namespace, NAME)
    if found is None:
        manifest = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": NAME, "namespace": namespace},
            "type": "Opaque",
            "immutable": True,
            "data": {_FIELD: base64.b64encode(secrets.token_bytes(_BYTES)).decode()},
        }
        try:
            await api.create(SECRET, namespace, manifest)
        except Refused as refusal:
            if not refusal.exists:
                raise
        found = await api.get(SECRET, namespace, NAME)
    key = base64.b64decode(((found or {}).get("data") or {}).get(_FIELD, ""))
    if len(key) < _BYTES:
        raise ValueError(
            f"Secret {NAME} in namespace {namespace} holds no key of {_BYTES} bytes: delete it to get a new one"
        )
    return key
