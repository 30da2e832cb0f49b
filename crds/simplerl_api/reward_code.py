"""What can be said of a reward's Python code without running it."""

import ast
from collections.abc import Iterator

ARGUMENTS = ("prompt", "question", "response", "answer", "record", "truncated")
"""What a reward function may ask for; the list only grows."""


def fault(source: str, function: str) -> str | None:
    """What is wrong with code that should define `function`, as the rest of a sentence that begins with the file's
    name; None where nothing is, as far as can be seen without running it."""
    try:
        tree = ast.parse(source.removeprefix("\ufeff"))  # as Python reads files
    except (SyntaxError, ValueError) as e:
        # ValueError: a null byte
        where = f" in line {e.lineno}" if isinstance(e, SyntaxError) and e.lineno else ""
        return f"is not Python ({e.msg if isinstance(e, SyntaxError) else e}{where}): correct it"
    defined = list(_names(tree.body))
    if None in defined:
        return None  # a star import, or a condition: only running it tells
    if function not in defined:
        own = _names([node for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom)])
        near = ", ".join(sorted({n for n in own if n and not n.startswith("_")})[:8]) or "nothing"
        return f"defines no function {function} (it defines {near}): add it, or name another one"
    last = next(node for node in reversed(tree.body) if function in _names([node]))
    return parameters_fault(last, function) if isinstance(last, ast.FunctionDef | ast.AsyncFunctionDef) else None


def parameters_fault(node: ast.FunctionDef | ast.AsyncFunctionDef, function: str) -> str | None:
    """What is wrong with a function's parameters."""
    if node.decorator_list:
        return None  # a decorator may change them
    a = node.args
    optional = a.args[len(a.args) - len(a.defaults) :] if a.defaults else []
    needed = [x.arg for x in a.args if x not in optional]
    needed += [x.arg for x, default in zip(a.kwonlyargs, a.kw_defaults, strict=True) if default is None]
    return wrong_parameters(function, [x.arg for x in a.posonlyargs], needed)


def wrong_parameters(function: str, positional: list[str], needed: list[str]) -> str | None:
    """The sentence for parameters that cannot be given: positional-only ones, or needed ones of other names."""
    if positional:
        return f"defines {function} with the positional parameter {positional[0]}: it is called by keywords alone"
    unknown = [name for name in needed if name not in ARGUMENTS]
    if unknown:
        return f"defines {function} with the parameter {unknown[0]}, which is not one of {', '.join(ARGUMENTS)}"
    return None


def _names(body: list[ast.stmt]) -> Iterator[str | None]:
    """Names that top-level statements bind; None where that is seen only by running them."""
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.Import() | ast.ImportFrom():
                for alias in node.names:
                    yield None if alias.name == "*" else (alias.asname or alias.name).partition(".")[0]
            case ast.Assign():
                for target in node.targets:
                    yield from (n.id for n in ast.walk(target) if isinstance(n, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case ast.If() | ast.Try() | ast.With() | ast.For() | ast.While() | ast.Match():
                yield None
