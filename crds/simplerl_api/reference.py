"""docs/reference/fields.md: every field of the spec, from the models."""

import json
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from simplerl_api import structural
from simplerl_api.spec.job import Spec
from simplerl_api.struct import Union, model_in

_HEAD = """# Every field of a SimpleRLJob

<!-- Made by `make generate` from crds/simplerl_api; change the models, not this file. -->

`kubectl explain simplerljob.spec` says the same in a terminal. Names in **bold** must be given. A field without a
default is left out unless you want it; its description says what holds then.
"""


def page() -> str:
    """The page, in Markdown."""
    schema = structural.schema(Spec, defaults=True)
    return "\n".join([_HEAD, *_sections("spec", Spec, schema)]) + "\n"


def _sections(path: str, model: type[BaseModel], schema: dict[str, Any]) -> Iterator[str]:
    """The section of a model, then those of the models within it."""
    yield f"## {path}\n"
    yield f"{schema['description']}\n" if "description" in schema else ""
    yield "| field | type | default | limits | |"
    yield "| --- | --- | --- | --- | --- |"
    inner = []
    for name, field in model.model_fields.items():
        alias = field.alias or name
        node = schema["properties"][alias]
        required = alias in schema.get("required", [])
        cells = (
            f"**{alias}**" if required else alias,
            _type(node),
            _default(field, model, alias, node),
            _limits(node),
            node.get("description", ""),
        )
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
        nested = model_in(field.annotation)
        of = node["items"] if node["type"] == "array" else node
        if nested is not None and of.get("properties"):
            inner.append((f"{path}.{alias}{'[]' if node['type'] == 'array' else ''}", nested, of))
    yield ""
    for rule in schema.get("x-kubernetes-validations", ()):
        yield f"- {rule['message']}\n"
    for section in inner:
        yield from _sections(*section)


def _type(node: dict[str, Any]) -> str:
    if "enum" in node:
        return " or ".join(f"`{choice}`" for choice in node["enum"])
    match node.get("type"):
        case "array":
            return f"list of {_type(node['items'])}"
        case "object":
            return "object" if node.get("properties") or "additionalProperties" not in node else "map"
        case kind:
            return str(kind or "any")


def _default(field: FieldInfo, model: type[BaseModel], alias: str, node: dict[str, Any]) -> str:
    if issubclass(model, Union) and alias in model.member_names():
        return "one of them"
    if field.is_required() or node.get("type") == "object":
        return ""
    default = field.default
    if default is PydanticUndefined and field.default_factory is not None:
        default = field.default_factory()  # type: ignore[call-arg]
    return "" if default in (None, {}, []) else f"`{json.dumps(default, default=str)}`"


def _limits(node: dict[str, Any]) -> str:
    """Bounds in words: numbers and lengths."""
    out = []
    if "minimum" in node:
        out.append(f"{'>' if node.get('exclusiveMinimum') else '≥'} {node['minimum']:,}")
    if "maximum" in node:
        out.append(f"{'<' if node.get('exclusiveMaximum') else '≤'} {node['maximum']:,}")
    if "maxItems" in node:
        out.append(
            f"{node['minItems']} to {node['maxItems']} items" if node.get("minItems") else f"{node['maxItems']} items"
        )
    if "maxLength" in node:
        out.append(f"{node['maxLength']} characters")
    return ", ".join(out)
