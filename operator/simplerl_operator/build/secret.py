"""The Secret with the job's token."""

import base64
import hashlib
import hmac
from typing import Any

from simplerl_api import names
from simplerl_operator.build import metadata
from simplerl_operator.observe.job import Job

TOKEN_KEY = "auth_token"
"""The key under which KubeRay looks for a token (authOptions.secretName)."""


def token(key: bytes, uid: str) -> str:
    """The token of a job: whoever holds the operator's key can make it again, so that it need not be read back."""
    return hmac.new(key, uid.encode(), hashlib.sha256).hexdigest()


def secret(job: Job, token: str) -> dict[str, Any]:
    """The Secret; one for all attempts of a job."""
    labels = {k: v for k, v in metadata.labels(job).items() if k != names.LABEL_ATTEMPT}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata.child(job, names.secret(job.name, job.uid), labels),
        "type": "Opaque",
        "immutable": True,
        "data": {TOKEN_KEY: base64.b64encode(token.encode()).decode()},
    }
