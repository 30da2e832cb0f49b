"""The operator's settings, read from the environment once."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from simplerl_api import validation
from simplerl_api.job_defaults import JobDefaults
from simplerl_operator.build.network_policy import Reach


class InvalidSettings(ValueError):
    """A setting that is missing or cannot be used; the message names the variable."""


@dataclass(frozen=True)
class Settings:
    """Each field is read from the variable named in its docstring."""

    trainer_image: str
    """SIMPLERL_TRAINER_IMAGE: image of jobs that name none."""
    namespaces: tuple[str, ...] = ()
    """SIMPLERL_NAMESPACES: the namespaces that are served, separated by commas; empty: all."""
    operator_namespace: str = "default"
    """OPERATOR_NAMESPACE: where the operator keeps its own Secret."""
    http_port: int = 8080
    """SIMPLERL_HTTP_PORT: port of /healthz and /metrics."""
    log_level: str = "INFO"
    """SIMPLERL_LOG_LEVEL: DEBUG, INFO, WARNING or ERROR."""
    workers: int = 8
    """SIMPLERL_WORKERS: jobs that are reconciled at the same time."""
    job_defaults: JobDefaults | None = None
    """SIMPLERL_JOB_DEFAULTS: what jobs get where they leave fields out, in JSON."""
    head_address: str | None = None
    """SIMPLERL_HEAD_ADDRESS: base URL that stands for every head's dashboard and /progress, with `{namespace}` and
    `{cluster}` filled in. For tests that put a head of their own in place of the pods."""
    figures_seconds: float = 10.0
    """SIMPLERL_FIGURES_SECONDS: least time between two writes of one job's training figures."""
    resync_seconds: float = 300.0
    """SIMPLERL_RESYNC_SECONDS: every job is looked at again after so long, in case an event was lost."""
    lease: str = "simplerl-operator"
    """SIMPLERL_LEASE: name of the Lease in the operator's namespace by which one operator at a time writes."""
    identity: str = ""
    """SIMPLERL_IDENTITY: who holds the Lease, the pod's name in a cluster: a container that comes back in its pod goes
    on at once. Empty: host, process and a random number."""
    network_policy: Mapping[str, Sequence[Mapping[str, object]]] | None = None
    """SIMPLERL_NETWORK_POLICY: a JSON object; with it, each job gets a NetworkPolicy. Its members `dashboardFrom` and
    `metricsFrom` are lists of NetworkPolicyPeers that are let in beside the job and the operator."""

    @property
    def reach(self) -> Reach | None:
        """Who may reach a job's pods; None: everybody, by no NetworkPolicy of ours."""
        if self.network_policy is None:
            return None
        return Reach(
            operator_namespace=self.operator_namespace,
            dashboard_from=self.network_policy.get("dashboardFrom", ()),
            metrics_from=self.network_policy.get("metricsFrom", ()),
        )


_VARIABLES = {
    "trainer_image": "SIMPLERL_TRAINER_IMAGE",
    "namespaces": "SIMPLERL_NAMESPACES",
    "operator_namespace": "OPERATOR_NAMESPACE",
    "http_port": "SIMPLERL_HTTP_PORT",
    "log_level": "SIMPLERL_LOG_LEVEL",
    "workers": "SIMPLERL_WORKERS",
    "job_defaults": "SIMPLERL_JOB_DEFAULTS",
    "head_address": "SIMPLERL_HEAD_ADDRESS",
    "figures_seconds": "SIMPLERL_FIGURES_SECONDS",
    "resync_seconds": "SIMPLERL_RESYNC_SECONDS",
    "lease": "SIMPLERL_LEASE",
    "identity": "SIMPLERL_IDENTITY",
    "network_policy": "SIMPLERL_NETWORK_POLICY",
}
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


def read(environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings in an environment. Raises InvalidSettings."""
    given: dict[str, object] = {}
    for field in fields(Settings):
        variable = _VARIABLES[field.name]
        text = environment.get(variable, "").strip()
        if text:
            given[field.name] = _value(field.name, variable, text)
    if "trainer_image" not in given:
        raise InvalidSettings("SIMPLERL_TRAINER_IMAGE is not set: give the image of jobs that name none")
    return Settings(**given)  # type: ignore[arg-type]


def _value(name: str, variable: str, text: str) -> object:
    match name:
        case "namespaces":
            return tuple(part.strip() for part in text.split(",") if part.strip())
        case "http_port" | "workers":
            if not text.isdigit() or int(text) < 1:
                raise InvalidSettings(f"{variable} is {text!r}: give a whole number from 1")
            return int(text)
        case "figures_seconds" | "resync_seconds":
            try:
                seconds = float(text)
            except ValueError:
                raise InvalidSettings(f"{variable} is {text!r}: give a number of seconds") from None
            if not 0 < seconds < float("inf"):
                raise InvalidSettings(f"{variable} is {text!r}: give a number of seconds above 0")
            return seconds
        case "network_policy":
            return _peers(variable, text)
        case "log_level":
            if text.upper() not in _LEVELS:
                raise InvalidSettings(f"{variable} is {text!r}: give one of {', '.join(_LEVELS)}")
            return text.upper()
        case "job_defaults":
            return _job_defaults(variable, text)
        case _:
            return text


def _job_defaults(variable: str, text: str) -> JobDefaults:
    try:
        return validation.parse_job_defaults(json.loads(text))
    except validation.InvalidJob as invalid:
        raise InvalidSettings(f"{variable}: {invalid}") from None
    except json.JSONDecodeError as error:
        raise InvalidSettings(f"{variable} is no JSON: {error}") from None


def _peers(variable: str, text: str) -> dict[str, list[dict[str, object]]]:
    wrong = f"{variable} is {text!r}: give a JSON object whose members dashboardFrom and metricsFrom are lists of peers"
    try:
        given = json.loads(text)
    except ValueError:
        raise InvalidSettings(wrong) from None
    if not isinstance(given, dict) or not set(given) <= {"dashboardFrom", "metricsFrom"}:
        raise InvalidSettings(wrong)
    for peers in given.values():
        if not isinstance(peers, list) or not all(isinstance(peer, dict) and peer for peer in peers):
            raise InvalidSettings(wrong)
    return given
