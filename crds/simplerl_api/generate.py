"""`make generate`: every file that is made from the models of the contract."""

from pathlib import Path
from typing import Any

from simplerl_api import API_VERSION, GROUP, KIND, PLURAL, VERSION, names, reference, structural, yaml12
from simplerl_api.spec.job import Spec
from simplerl_api.status import Status

_ROOT = Path(__file__).parents[2]
_CRD = Path("crds/simplerljobs.yaml")
_CHART_CRD = Path("charts/simplerl-operator/files/simplerljobs.yaml")
_FIELDS = Path("docs/reference/fields.md")

_COLUMNS = (
    ("Phase", "string", ".status.phase", 0, "Where the job stands"),
    ("Step", "string", ".status.summary.step", 0, "Finished steps and all steps"),
    ("Progress", "string", ".status.summary.progress", 0, "Finished share of the steps"),
    ("Reward", "string", ".status.summary.reward", 0, "Mean reward of the newest step"),
    ("Eval", "string", ".status.summary.eval", 0, "Newest accuracy on the first evaluation data set"),
    ("Duration", "string", ".status.summary.duration", 0, "Time from start to completion"),
    ("Age", "date", ".metadata.creationTimestamp", 0, "Time since the job was created"),
    ("Reason", "string", ".status.conditions[?(@.type=='Ready')].reason", 1, "Why the job stands there"),
    ("Model", "string", ".status.summary.model", 1, "The model"),
    ("GPUs", "integer", ".spec.cluster.gpus", 1, "GPUs of the job"),
    ("Cluster", "string", ".status.cluster.name", 1, "The RayCluster"),
)


_NOT_STARTED = "!has(oldSelf.status) || !has(oldSelf.status.startTime)"
_ONCE_STORED = {
    "spec.rewards": {"weight": "1.0"},
    "spec.cluster.env": {"value": "''"},
    "spec.cluster.volumes": {"readOnly": "true"},
}
"""Defaults that the CRD once wrote into items of lists: a manifest without them says the same."""
_LIVE = ("activeDeadlineSeconds", "recovery", "suspend", "ttlSecondsAfterFinished")
"""Sections of the spec that may change while the job runs."""


def custom_resource_definition() -> dict[str, Any]:
    """The CustomResourceDefinition of SimpleRLJob."""
    spec, status = structural.schema(Spec, defaults=True), structural.schema(Status, defaults=False)
    fixed = sorted(set(spec["properties"]) - set(_LIVE))
    schema = {
        "description": "A SimpleRLJob trains a language model by zero-RL: PPO with rule-based rewards.",
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": f"{API_VERSION}"},
            "kind": {"type": "string", "description": KIND},
            "metadata": {"type": "object"},
            "spec": spec,
            "status": status,
        },
        "x-kubernetes-validations": [
            {
                "rule": f"self.metadata.name.size() <= {names.MAX_NAME}"
                f" && self.metadata.name.matches('{names.NAME_PATTERN}')",
                "message": names.NAME_RULE,
            },
            *(_immutable(field, spec) for field in fixed if field not in ("cluster", "rollout")),
            *(_immutable_rollout(field) for field in sorted(spec["properties"]["rollout"]["properties"])),
            {
                "rule": f"{_NOT_STARTED} || (has(oldSelf.status.phase) && oldSelf.status.phase == 'Suspended')"
                f" || ({_same('spec.cluster', spec['properties']['cluster'])})",
                "message": "spec.cluster is fixed once the job has started: suspend the job to change it",
            },
        ],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": KIND,
                "listKind": f"{KIND}List",
                "plural": PLURAL,
                "singular": PLURAL[:-1],
                "shortNames": ["srl"],
                "categories": ["ml"],
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [
                        {"name": n, "type": t, "jsonPath": p, "priority": o, "description": d}
                        for n, t, p, o, d in _COLUMNS
                    ],
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


def _immutable(field: str, spec: structural.Schema) -> dict[str, str]:
    """A rule by which one field of the spec stays as it was once the job has started."""
    same = _same(f"spec.{field}", spec["properties"][field])
    if field not in spec["required"]:
        same = _absent_or(f"spec.{field}", same)
    return {
        "rule": f"{_NOT_STARTED} || ({same})",
        "message": f"spec.{field} is fixed once the job has started: delete the job, or create another one beside it",
    }


def _same(path: str, node: structural.Schema) -> str:
    """Whether a field that is there is what it was, where a default that once was stored is as good as none."""
    new, old = f"self.{path}", f"oldSelf.{path}"
    if (once := _ONCE_STORED.get(path)) is not None:
        return " && ".join(
            f"{new}.map(x, {value}) == {old}.map(x, {value})"
            for name in node["items"]["properties"]
            for value in [f"has(x.{name}) ? [x.{name}] : [{once[name]}]" if name in once else _item(name, node)]
        )
    if not any(stored.startswith(f"{path}.") for stored in _ONCE_STORED):
        return f"{new} == {old}"
    fields = ((f"{path}.{name}", name, child) for name, child in node["properties"].items())
    return " && ".join(
        _same(at, child) if name in node["required"] else _absent_or(at, _same(at, child)) for at, name, child in fields
    )


def _item(name: str, node: structural.Schema) -> str:
    """The value of one field of a list's item, as a list since it may be absent."""
    return f"[x.{name}]" if name in node["items"]["required"] else f"has(x.{name}) ? [x.{name}] : []"


def _absent_or(path: str, same: str) -> str:
    new, old = f"self.{path}", f"oldSelf.{path}"
    return f"has({new}) == has({old}) && (!has({new}) || ({same}))"


def _immutable_rollout(field: str) -> dict[str, str]:
    """Likewise for a field of spec.rollout; the number of engines may change where they have GPUs of their own."""
    new, old = f"self.spec.rollout.{field}", f"oldSelf.spec.rollout.{field}"
    same = f"has({new}) == has({old}) && (!has({new}) || {new} == {old})"
    both = "has(self.spec.rollout) == has(oldSelf.spec.rollout)"
    rule = f"{_NOT_STARTED} || ({both} && (!has(self.spec.rollout) || ({same})))"
    fixed = f"spec.rollout.{field} is fixed once the job has started"
    if field != "engines":
        return {"rule": rule, "message": f"{fixed}: delete the job, or create another one beside it"}
    live = (
        " || (has(self.spec.placement) && has(self.spec.placement.disaggregated) && has(self.spec.rollout)"
        " && has(self.spec.rollout.engines) && has(oldSelf.status.plan)"
        " && self.spec.rollout.engines <= oldSelf.status.plan.engines)"
    )
    message = f"{fixed}, but from 1 to status.plan.engines where placement is disaggregated"
    return {"rule": rule + live, "message": message}


def main() -> None:
    """Writes the generated files."""
    header = "# Made by `make generate` from crds/simplerl_api; change the models, not this file.\n"
    crd = header + yaml12.dump(custom_resource_definition())
    for path, text in ((_CRD, crd), (_CHART_CRD, crd), (_FIELDS, reference.page())):
        target = _ROOT / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        print(f"{path}: {len(text.encode())} bytes")


if __name__ == "__main__":
    main()
