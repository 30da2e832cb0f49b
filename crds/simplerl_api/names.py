"""Names of a job and of what belongs to it."""

import re

MAX_NAME = 44
"""A RayCluster's name is at most 50 characters before KubeRay shortens its Secret's name; ours adds `-<uid5>-<n>`."""
NAME_PATTERN = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"
NAME_RULE = (
    f"metadata.name must be at most {MAX_NAME} characters of a-z, 0-9 and -, start with a letter and end with a letter "
    "or digit (its pods and services are named after it)"
)

LABEL_JOB = "simplerl.io/job"
LABEL_UID = "simplerl.io/job-uid"
LABEL_ATTEMPT = "simplerl.io/attempt"
LABEL_ROLE = "simplerl.io/role"


def valid(name: str) -> bool:
    """Whether a job may bear this name."""
    return len(name) <= MAX_NAME and re.match(NAME_PATTERN, name) is not None


def short(uid: str, length: int = 5) -> str:
    """The first characters of an object's uid."""
    return uid.replace("-", "")[:length]


def cluster(name: str, uid: str, attempt: int) -> str:
    """Name of the RayCluster that is made for an attempt; a re-created job never meets the old one's."""
    return f"{name}-{short(uid)}-{attempt}"


def cluster_attempt(cluster: str) -> int:
    """The attempt for which a RayCluster was made."""
    return int(cluster.rpartition("-")[2])


def submission(cluster: str, attempt: int) -> str:
    """Submission id of an attempt: the RayCluster's name, and `<cluster>-r<attempt>` for later attempts in it."""
    return cluster if attempt == cluster_attempt(cluster) else f"{cluster}-r{attempt}"


def secret(name: str, uid: str) -> str:
    """Name of the Secret that holds the job's token."""
    return f"{name}-{short(uid)}"


def output_folder(namespace: str, name: str, uid: str) -> str:
    """The run's folder, relative to the checkpoint claim."""
    return f"{namespace}/{name}-{short(uid, 8)}"
