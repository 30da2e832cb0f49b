"""Reading a job's document, with every fault as a sentence that names the field, its value and what to do."""

import difflib
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from simplerl_api import names
from simplerl_api.job_defaults import JobDefaults
from simplerl_api.plain import kind
from simplerl_api.plan import make_plan
from simplerl_api.plan_error import PlanError
from simplerl_api.progress import ControlRequest
from simplerl_api.spec.job import Metadata, SimpleRLJob, Spec
from simplerl_api.struct import model_in

M = TypeVar("M", bound=BaseModel)


class InvalidJob(ValueError):
    """A job that the cluster would refuse; `faults` holds a sentence for each reason."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = tuple(faults)


def parse(document: Any) -> SimpleRLJob:
    """The job in a document. Raises InvalidJob."""
    if not isinstance(document, dict):
        raise InvalidJob([f"expected an object with apiVersion, kind, metadata and spec, found {kind(document)}"])
    return _read(SimpleRLJob, document, "")


def parse_spec(document: Any) -> Spec:
    """The spec in a document. Raises InvalidJob."""
    return _read(Spec, document, "spec")


def parse_metadata(document: Any) -> Metadata:
    """An object's metadata. Raises InvalidJob."""
    return _read(Metadata, document, "metadata")


def parse_control(document: Any) -> ControlRequest:
    """The request in the body of `PUT /control`. Raises InvalidJob."""
    return _read(ControlRequest, document, "")


def parse_job_defaults(document: Any) -> JobDefaults:
    """The chart's jobDefaults. Raises InvalidJob."""
    return _read(JobDefaults, document, "jobDefaults")


def faults(document: Any) -> list[str]:
    """Every sentence that the cluster would say of this document; empty where it would be accepted."""
    try:
        job = parse(document)
    except InvalidJob as e:
        return list(e.faults)
    found = [] if names.valid(job.metadata.name) else [f"metadata.name is {job.metadata.name}: {names.NAME_RULE}"]
    try:
        make_plan(job.spec)
    except PlanError as e:
        found.append(f"spec.{e}")
    return found


def cluster_faults(spec: Spec) -> list[str]:
    """What a cluster refuses and a machine by itself takes."""
    other = spec.checkpoint.resume_from
    if other is None or spec.checkpoint.claim_name is not None:
        return []
    return [
        f"spec.checkpoint.resumeFrom is {other}, but there is no spec.checkpoint.claimName in which that folder could "
        "lie: name the claim"
    ]


def _read(model: type[M], document: Any, prefix: str) -> M:
    # strict JSON mode: the API server does not turn "3" into 3 either
    try:
        return model.model_validate_json(json.dumps(_whole(document)), strict=True)
    except ValidationError as e:
        raise InvalidJob([_sentence(error, model, prefix) for error in e.errors()]) from e
    except TypeError as e:
        raise InvalidJob([f"{prefix or 'the document'} holds something that JSON cannot: {e}"]) from e


def _whole(value: Any) -> Any:
    """A value as it reaches the API server: YAML's 1e6 and 3.0 are whole numbers in JSON."""
    match value:
        case dict():
            return {name: _whole(member) for name, member in value.items()}
        case list():
            return [_whole(member) for member in value]
        case float() if value.is_integer():
            return int(value)
    return value


def _sentence(error: ErrorDetails, model: type[BaseModel], prefix: str) -> str:
    path = _path(prefix, error["loc"])
    match error["type"]:
        case "extra_forbidden":
            guess = difflib.get_close_matches(str(error["loc"][-1]), list(_fields_at(model, error["loc"][:-1])), n=1)
            return f'unknown field "{path}"' + (f": did you mean {guess[0]}?" if guess else "")
        case "missing":
            return f"{path} is missing: it must be given"
        case "value_error":
            return f"{path}: {str(error['ctx']['error']) if 'ctx' in error else error['msg']}"
        case _:
            message = error["msg"][0].lower() + error["msg"][1:]
            message = message.replace("input should", "it should").replace(" after validation", "")
            return f"{path} is {_shown(error['input'])}: {message}{_what_to_do(error)}"


def _what_to_do(error: ErrorDetails) -> str:
    """For a value of another type: what the author of a YAML file most likely meant."""
    match error["type"], error["input"]:
        case "string_type", bool() | int() | float():
            return ", in quotes"
        case "bool_type", _:
            return ", true or false"
        case "int_type" | "float_type", str(text) if re.fullmatch(r"[-+]?[0-9.]+([eE][-+]?[0-9]+)?", text):
            return ", without quotes"
    return ""


def _path(prefix: str, loc: Sequence[str | int]) -> str:
    path = prefix
    for part in loc:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path or "the document"


def _fields_at(model: type[BaseModel], loc: Sequence[str | int]) -> Iterator[str]:
    """JSON names of the fields of the model that stands at a location."""
    for part in loc:
        if isinstance(part, int):
            continue
        field = next((f for n, f in model.model_fields.items() if part in (n, f.alias)), None)
        inner = model_in(field.annotation) if field else None
        if inner is None:
            return
        model = inner
    yield from (f.alias or n for n, f in model.model_fields.items())


def _shown(value: Any) -> str:
    text = json.dumps(value) if not isinstance(value, str) else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
