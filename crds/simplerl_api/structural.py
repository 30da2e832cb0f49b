"""From a pydantic model to a structural schema, as the API server wants it.

https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema
"""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from simplerl_api.status import Status
from simplerl_api.struct import Struct, Union, model_in

Schema = dict[str, Any]

_KEPT = {
    "minLength": "minLength", "maxLength": "maxLength", "minimum": "minimum", "maximum": "maximum",
    "minItems": "minItems", "maxItems": "maxItems", "maxProperties": "maxProperties", "minProperties": "minProperties",
    "pattern": "pattern", "format": "format",
}  # fmt: skip


def schema(model: type[BaseModel], *, defaults: bool) -> Schema:
    """The structural schema of a model; `defaults` says whether fields carry theirs (a spec's do, a status's not)."""
    document = model.model_json_schema(by_alias=True)
    return _object(model, document, document.get("$defs", {}), defaults)


def _object(model: type[BaseModel], node: Schema, definitions: Mapping[str, Schema], defaults: bool) -> Schema:
    properties: dict[str, Schema] = {}
    is_union = issubclass(model, Union)
    for name, field in model.model_fields.items():
        alias = field.alias or name
        member = is_union and alias in model.member_names()  # type: ignore[attr-defined]
        properties[alias] = _value(field.annotation, node["properties"][alias], definitions, defaults and not member)
        if issubclass(model, Status) and alias in model.map_lists:
            properties[alias] |= {
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": [model.map_lists[alias]],
            }
    out: Schema = {"type": "object", "properties": properties}
    if "description" in node:
        out = {"description": " ".join(node["description"].split()), **out}
    required = [a for a in node.get("required", [])]
    if required:
        out["required"] = required
    rules = list(model.cel) if issubclass(model, Struct) else []
    if is_union:
        has = ", ".join(f"has(self.{m})" for m in model.member_names())  # type: ignore[attr-defined]
        one = "filter(x, x).size() <= 1" if model.none_allowed else "exists_one(x, x)"  # type: ignore[attr-defined]
        rules.append((f"[{has}].{one}", model.one_of()))  # type: ignore[attr-defined]
    if rules:
        out["x-kubernetes-validations"] = [{"rule": rule, "message": message} for rule, message in rules]
    return out


def _value(annotation: Any, node: Schema, definitions: Mapping[str, Schema], defaults: bool) -> Schema:
    description = node.get("description")
    default = node.get("default")
    node = _resolved(node, definitions)
    model = model_in(annotation)
    out: Schema
    match node.get("type"):
        case "object" if (model is not None and "properties" in node) or (
            model is not None and not node.get("additionalProperties")
        ):
            out = _object(model, node, definitions, defaults)
        case "object":
            values = node.get("additionalProperties")
            out = {"type": "object"}
            if isinstance(values, dict) and values:
                out["additionalProperties"] = _value(None, values, definitions, False)
            else:
                out["x-kubernetes-preserve-unknown-fields"] = True
        case "array":
            # a default inside a list would be a difference to each tool that compares manifest and object, since lists
            # are compared as wholes; and each server-side apply would be a write where status is written too
            out = {"type": "array", "items": _value(annotation, node.get("items", {}), definitions, False)}
        case None if "enum" not in node:
            out = {"x-kubernetes-preserve-unknown-fields": True}
        case kind:
            out = {"type": kind}
            if kind == "integer":
                out["format"] = "int64"
            if kind == "number":
                out["format"] = "double"
    if "enum" in node:
        out["enum"] = node["enum"]
    out |= {_KEPT[k]: v for k, v in node.items() if k in _KEPT}
    if "exclusiveMinimum" in node:
        out |= {"minimum": node["exclusiveMinimum"], "exclusiveMinimum": True}
    if "exclusiveMaximum" in node:
        out |= {"maximum": node["exclusiveMaximum"], "exclusiveMaximum": True}
    if description:
        out = {"description": " ".join(description.split()), **{k: v for k, v in out.items() if k != "description"}}
    if defaults and default is not None and out.get("type") not in ("object", "array"):
        out["default"] = default
    return out


def _resolved(node: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """The node without references, and without the null of an optional field."""
    if "$ref" in node:
        return _resolved(definitions[node["$ref"].rsplit("/", 1)[-1]], definitions)
    for key in ("anyOf", "allOf"):
        if key in node:
            choices = [c for c in node[key] if c.get("type") != "null"]
            if len(choices) == 1:
                return {**_resolved(choices[0], definitions), **{k: v for k, v in node.items() if k in _KEPT}}
            return {}
    return node
