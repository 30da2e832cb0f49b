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
_FIXED = "fixed once the job has started"
_ANOTHER = "delete the job, or create another one beside it"


def custom_resource_definition() -> dict[str, Any]:
    """The CustomResourceDefinition of SimpleRLJob."""
    spec, status = structural.schema(Spec, defaults=True), structural.schema(Status, defaults=False)
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
            _fixed(spec),
            _fixed_engines(),
            _fixed_cluster(spec),
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


def _fixed(spec: structural.Schema) -> dict[str, str]:
    """What stays as it was once the job has started. One rule for all fields, which first asks whether anything has
    changed: the API server judges every rule at every write of the status too, and a rule for each of these fields was
    a third of such a write's cost."""
    sections, rollout = spec["properties"], spec["properties"]["rollout"]["properties"]
    same = {
        f"spec.{name}": _same(f"spec.{name}", sections[name])
        if name in spec["required"]
        else _absent_or(f"spec.{name}", _same(f"spec.{name}", sections[name]))
        for name in sorted(set(sections) - {*_LIVE, "cluster", "rollout"})
    }
    same["spec.rollout"] = "has(self.spec.rollout) == has(oldSelf.spec.rollout)"
    same |= {f"spec.rollout.{name}": _same_in_rollout(name) for name in sorted(set(rollout) - {"engines"})}
    unchanged = " && ".join(f"({test})" for test in same.values())
    changed = ", ".join(f"({test}) ? '' : '{path}'" for path, test in same.items())
    return {
        "rule": f"{_NOT_STARTED} || self.spec == oldSelf.spec || ({unchanged})",
        "fieldPath": ".spec",
        "reason": "FieldValueForbidden",
        "message": f"the spec is {_FIXED}: {_ANOTHER}",
        "messageExpression": f"[[{changed}].filter(x, x != '')].map(names, names.join(', ')"
        f" + (names.size() == 1 ? ' is' : ' are') + ' {_FIXED}: {_ANOTHER}')[0]",
    }


def _fixed_engines() -> dict[str, str]:
    """The number of engines may change where they have GPUs of their own."""
    return {
        "rule": f"{_NOT_STARTED} || ({_same_in_rollout('engines')})"
        " || (has(self.spec.placement) && has(self.spec.placement.disaggregated) && has(self.spec.rollout)"
        " && has(self.spec.rollout.engines) && has(oldSelf.status.plan)"
        " && self.spec.rollout.engines <= oldSelf.status.plan.engines)",
        "fieldPath": ".spec.rollout.engines",
        "reason": "FieldValueForbidden",
        "message": f"spec.rollout.engines is {_FIXED}, but from 1 to status.plan.engines where placement is"
        " disaggregated",
    }


def _fixed_cluster(spec: structural.Schema) -> dict[str, str]:
    """The pods may change while there are none."""
    return {
        "rule": f"{_NOT_STARTED} || (has(oldSelf.status.phase) && oldSelf.status.phase == 'Suspended')"
        f" || self.spec.cluster == oldSelf.spec.cluster || ({_same('spec.cluster', spec['properties']['cluster'])})",
        "fieldPath": ".spec.cluster",
        "reason": "FieldValueForbidden",
        "message": f"spec.cluster is {_FIXED}: suspend the job to change it",
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


def _same_in_rollout(field: str) -> str:
    """Whether a field of spec.rollout is what it was, where both have that section."""
    same = _absent_or(f"spec.rollout.{field}", f"self.spec.rollout.{field} == oldSelf.spec.rollout.{field}")
    return f"!has(self.spec.rollout) || !has(oldSelf.spec.rollout) || ({same})"


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
