"""The token of each job."""

from simplerl_operator.build import secret
from simplerl_operator.observe.job import Job


class Tokens:
    """Makes them with the operator's key, which is there once the Lease is held."""

    key: bytes = b""

    def of(self, job: Job) -> str:
        return secret.token(self.key, job.uid)
