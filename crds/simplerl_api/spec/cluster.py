"""The pods of the job."""

from typing import Annotated, ClassVar

from pydantic import Field, JsonValue, field_validator

from simplerl_api.struct import Struct, Text, Union

Quantity = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$", max_length=32)]
"""A Kubernetes quantity, for example 500m or 16Gi."""


class Resources(Struct):
    """Requests and limits of a container."""

    requests: Annotated[dict[Text, Quantity], Field(max_length=16)] = Field(default_factory=dict)
    """Requested amounts, for example {cpu: 500m, memory: 2Gi}."""
    limits: Annotated[dict[Text, Quantity], Field(max_length=16)] = Field(default_factory=dict)
    """Upper bounds, for example {memory: 4Gi}."""


class Pods(Struct):
    """Where pods of one kind run and what they get."""

    resources: Resources | None = None
    """Requests and limits of the Ray container, in place of the stated defaults; the GPUs come from cluster.gpus."""
    node_selector: Annotated[dict[Text, Text], Field(max_length=32)] = Field(default_factory=dict)
    """Labels that a node must have."""
    tolerations: Annotated[list[dict[str, JsonValue]], Field(max_length=32)] = Field(default_factory=list)
    """Taints that the pods tolerate, as in a pod's spec."""


class Volume(Union):
    """A folder mounted into every container: exactly one of claimName, configMapName, secretName."""

    members = ("claimName", "configMapName", "secretName")

    mount_path: Annotated[str, Field(pattern=r"^/[^:]*$", max_length=512)]
    """Where the folder appears in the containers."""
    read_only: bool = True
    """Whether the containers may only read it. Absent: true."""
    claim_name: Text | None = None
    """A PersistentVolumeClaim of the job's namespace."""
    config_map_name: Text | None = None
    """A ConfigMap of the job's namespace."""
    secret_name: Text | None = None
    """A Secret of the job's namespace."""


OPERATORS_VARIABLES = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_ADDRESS", "RAY_IP", "FQ_RAY_IP", "HOME")
"""Variables that KubeRay leaves alone where they are already there: with them a job could switch its own lock off."""


class EnvVar(Struct):
    """An environment variable of every container."""

    cel: ClassVar[tuple[tuple[str, str], ...]] = (
        (f"!(self.name in {list(OPERATORS_VARIABLES)})", "the operator sets this variable: leave it out"),
    )

    name: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=128)]
    """Name of the variable."""

    @field_validator("name")
    @classmethod
    def _not_the_operators(cls, value: str) -> str:
        if value in OPERATORS_VARIABLES:
            raise ValueError(f"the operator sets {value}: leave it out")
        return value

    value: Annotated[str, Field(max_length=4096)] = ""
    """Its value. Absent: an empty text."""


class PullSecret(Struct):
    """A Secret that holds the credentials of an image registry."""

    name: Text
    """Name of the Secret."""


MAX_GPUS_PER_NODE = 64


class Cluster(Struct):
    """The Ray cluster of the job: one head without GPUs, and workers with them."""

    gpus: int = Field(ge=1, le=4096)
    """GPUs of the whole job: the one size that users write."""
    gpus_per_node: int = Field(default=8, ge=1, le=MAX_GPUS_PER_NODE)
    """GPUs of one worker pod; gpus must be a multiple, or smaller."""
    gpu_resource: Annotated[str, Field(pattern=r"^[a-z0-9.-]+/[A-Za-z0-9._-]+$", max_length=253)] = "nvidia.com/gpu"
    """Name of the GPU resource."""
    cpu_only: bool = False
    """True: a CPU slot stands for each GPU, for tests and laptops."""
    image: Annotated[str, Field(min_length=1, max_length=512)] | None = None
    """Image of all containers. Absent: the trainer image of the operator's version."""
    head: Pods = Field(default_factory=Pods)
    """The head: Ray's own services and the driver."""
    workers: Pods = Field(default_factory=Pods)
    """The workers: ranks and engines."""
    volumes: Annotated[list[Volume], Field(max_length=32)] = Field(default_factory=list)
    """Folders mounted into every container."""
    env: Annotated[list[EnvVar], Field(max_length=64)] = Field(default_factory=list)
    """Environment variables of every container, and those beyond the ordinary that python rewards see."""
    image_pull_secrets: Annotated[list[PullSecret], Field(max_length=8)] = Field(default_factory=list)
    """Credentials for the image's registry."""
    shm_size: Quantity | None = None
    """Size of /dev/shm in each pod. Absent: 16Gi, or 1Gi where cpuOnly."""
    priority_class_name: Text | None = None
    """PriorityClass of the pods."""
    scheduler_name: Text | None = None
    """Scheduler of the pods, where it is not the default one."""
    keep_after_failure_seconds: int | None = Field(default=None, ge=1, le=604800)
    """Seconds for which the pods of a job that failed are kept, to look into them. Absent: they go at once."""
