"""YAML as people mean it: `3e-4` is a number, `no` is a word, a key given twice is an error.

PyYAML follows YAML 1.1, which reads `3e-4` as text, `no` as false and `010` as 8. The loader here
resolves plain scalars as YAML 1.2 does, and every failure is one sentence with a line number.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from typing import Any

import yaml

_MAX_DIGITS = 30  # no setting is larger; Python refuses to print an int of thousands of digits
_TAG = "tag:yaml.org,2002:"
# (tag, what a plain scalar looks like, its first characters). Order matters: an int is no float.
_SCALARS = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", r"[-+]?[0-9][0-9_]*", "-+0123456789"),
    (
        "float",
        r"[-+]?(?:\.[0-9][0-9_]*|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+0123456789.",
    ),
    ("merge", r"<<", "<"),
)


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 (filled below, not YAML 1.1's)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Refuses a key given twice: PyYAML keeps the last one and says nothing."""
        seen: dict[Any, int] = {}
        for key_node, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag == f"{_TAG}merge":
                continue
            key, line = self.construct_object(key_node), key_node.start_mark.line + 1
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    problem=f"{key!r} is given twice, first on line {seen[key]}",
                    problem_mark=key_node.start_mark,
                )
            seen[key] = line
        return super().construct_mapping(node, deep=deep)

    def read_int(self, node: yaml.ScalarNode) -> int:
        digits = self.construct_scalar(node).replace("_", "")
        if len(digits) > _MAX_DIGITS:
            raise yaml.constructor.ConstructorError(
                problem=f"found a number of {len(digits)} digits", problem_mark=node.start_mark
            )
        return int(digits)  # 010 is ten, as in YAML 1.2

    def read_float(self, node: yaml.ScalarNode) -> float:
        text = self.construct_scalar(node).replace("_", "").lower()
        return float(text.replace(".inf", "inf").replace(".nan", "nan"))


class _Dumper(yaml.SafeDumper):
    """Quotes exactly the texts that the loader would read as something else."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 (filled below, not YAML 1.1's)

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def write_float(self, value: float) -> yaml.ScalarNode:
        """50 for 50.0, to read well; 3.0e-05 for 3e-05, which every YAML reader takes."""
        if value.is_integer() and abs(value) < 1e6:
            return self.represent_int(int(value))
        return super().represent_float(value)

    def write_text(self, value: str) -> yaml.ScalarNode:
        """Double quotes around line breaks of any kind, which other styles fold into one."""
        style = None if value.isprintable() else '"'
        return self.represent_scalar(f"{_TAG}str", value, style=style)


for _class in (_Loader, _Dumper):
    for _name, _pattern, _first in _SCALARS:
        _class.add_implicit_resolver(_TAG + _name, re.compile(rf"(?:{_pattern})\Z"), list(_first))
_Loader.add_constructor(f"{_TAG}int", _Loader.read_int)
_Loader.add_constructor(f"{_TAG}float", _Loader.read_float)
_Dumper.add_representer(float, _Dumper.write_float)
_Dumper.add_representer(str, _Dumper.write_text)


def read_yaml(text: str, where: str) -> Any:
    """The one document in `text`; `where` names it in the message of a `ValueError`."""
    try:
        return yaml.load(text, _Loader)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        problem = f"character {error.character:#06x} is not allowed in YAML"
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        problem = " ".join((error.problem or error.context or "cannot be read").split())
        if r"\t" in problem:
            problem = "found a tab where YAML wants spaces"
    except RecursionError:
        raise ValueError(f"{where} is nested too deeply; expected two levels at most.") from None
    except (ValueError, TypeError, KeyError, AttributeError):  # PyYAML on `!!int x`, `!!bool x`
        raise ValueError(f"{where} has a value that does not fit its !! tag.") from None
    raise ValueError(f"{where} is not valid YAML: line {line}: {problem}.")


def read_value(text: str, where: str) -> Any:
    """One value, as after a colon, but a plain one is never a comment or a mapping: in
    `text_column=#1` and `dataset=a: b` all of it is meant."""
    text = text.strip()
    if text[:1] in ("{", "[", "'", '"'):
        return read_yaml(text, where)
    loader = _Loader("")
    node = yaml.ScalarNode(loader.resolve(yaml.ScalarNode, text, (True, False)), text)
    try:
        return loader.construct_object(node)
    except yaml.MarkedYAMLError as error:
        raise ValueError(f"{where} is not valid: {error.problem}.") from None


def write_yaml(values: Mapping[str, Any], *, one_line: bool = False) -> str:
    """`values` in their order, a line each; `one_line` puts all of them on one: {a: 1, b: 2}."""
    return yaml.dump(
        dict(values),
        Dumper=_Dumper,
        sort_keys=False,
        default_flow_style=one_line,
        allow_unicode=True,
        width=10_000_000,
    )
