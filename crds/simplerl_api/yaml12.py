"""The one YAML loader: YAML 1.2, in which 5e-7 is a number, and `on` and 2026-12-01 are texts."""

import io
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.constructor import ConstructorError, SafeConstructor
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import ScalarNode

from simplerl_api.plain import plain


class _Constructor(SafeConstructor):
    """ruamel's, without YAML 1.1's dates, which JSON does not have either."""

    def construct_yaml_int(self, node: ScalarNode) -> int:
        try:
            return int(super().construct_yaml_int(node))
        except ValueError as e:  # more digits than Python reads
            problem = f"found a number of {len(node.value)} characters"
            raise ConstructorError(problem=problem, problem_mark=node.start_mark) from e


_Constructor.add_constructor("tag:yaml.org,2002:int", _Constructor.construct_yaml_int)
_Constructor.add_constructor("tag:yaml.org,2002:timestamp", SafeConstructor.construct_yaml_str)


def load(text: str) -> Any:
    """The single document of a YAML text as plain data.

    Raises ValueError naming the line where the text is not YAML, holds a duplicate key or several documents, and the
    place of what is not plain data.
    """
    documents = load_all(text)
    if not documents:
        raise ValueError("expected one YAML document, found 0: write a job into it")
    if len(documents) > 1:
        raise ValueError(f"expected one YAML document, found {len(documents)}: put each job in a file of its own")
    return documents[0]


def load_all(text: str) -> list[Any]:
    """The documents of a YAML text that are not empty, as plain data. Raises ValueError as `load`."""
    yaml = YAML(typ="safe", pure=True)
    yaml.Constructor = _Constructor
    try:
        return [plain(d) for d in yaml.load_all(text) if d is not None]
    except YAMLError as e:
        raise ValueError(f"not YAML: {_sentence(e)}") from e
    except RecursionError as e:
        raise ValueError("not YAML that can be read: its lists and objects are nested too deeply: write it flat") from e


def load_file(path: Path) -> Any:
    """The single document of a YAML file."""
    return load(path.read_text(encoding="utf-8-sig"))


def dump(document: Any) -> str:
    """Plain data as YAML, keys in their order."""
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    yaml.width = 120
    out = io.StringIO()
    yaml.dump(document, out)
    return out.getvalue()


def _sentence(error: YAMLError) -> str:
    """What is wrong, where, and for the usual slips what to do."""
    if not isinstance(error, MarkedYAMLError) or error.problem_mark is None:
        return " ".join(str(error).split()).replace('in "<unicode string>", ', "at ")
    problem = " ".join(str(error.problem).split())
    where = f"at line {error.problem_mark.line + 1}, column {error.problem_mark.column + 1}"
    if problem.startswith("found duplicate key"):
        return f"{problem.partition(' with value')[0]} {where}: leave one of the two out"
    if "'\\t'" in problem:
        return f"{problem} {where}: indent with spaces"
    begun = f" ({error.context} from line {error.context_mark.line + 1})" if error.context_mark else ""
    return f"{problem} {where}{begun}"
