"""Tensors that are listed by formulas over a config's fields: the mixers and further tensors of `architectures.toml`.

A tensor is ``name: rows, columns if condition``. In formulas stand names of fields (dots lead into objects, ``|`` is
between alternatives), a type's own names for formulas (`ModelType.let`), integers, ``+ - * //``, ``not``, and
``a if b else c``.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType

from specopt.instances.checkpoints.attention import Mixer
from specopt.instances.checkpoints.config_fields import Fields
from specopt.instances.checkpoints.model_types import Form
from specopt.instances.checkpoints.weights import Role, Weight

OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = MappingProxyType(
    {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv}
)


class Sizes:
    """Values of formulas for one config, whose sizes are at least `low`; those that may be absent may be 0."""

    def __init__(self, fields: Fields, low: int = 1) -> None:
        self.fields, self.low = fields, low

    def __call__(self, formula: str) -> int:
        """Return a formula's value."""
        return self._value(ast.parse(formula, mode="eval").body)

    def tensors(self, lines: Iterable[str]) -> Iterator[Weight]:
        """Yield the tensors whose conditions hold and that are not empty; those of two dimensions are linear layers."""
        for line in lines:
            name, _, rest = line.partition(": ")
            dimensions, _, condition = rest.partition(" if ")
            if condition and not self(condition):
                continue
            name, _, role = name.partition(" ")
            shape = tuple(map(self, dimensions.split(", ")))
            if all(shape):
                kind: Role = "router" if role else "linear"
                yield Weight(name=name, shape=shape, role=kind if len(shape) == 2 else "other")

    def _value(self, node: ast.expr) -> int:
        match node:
            case ast.Constant(value=int(found)):
                return found
            case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
                return OPERATORS[type(op)](self._value(left), self._value(right))
            case ast.UnaryOp(operand=operand):
                return int(not self._value(operand))
            case ast.IfExp(test=test, body=body, orelse=other):
                return self._value(body if self._value(test) else other)
        name, kind = ast.unparse(node).replace(" ", ""), self.fields.type
        if name in kind.let:
            return self(kind.let[name])
        if name in kind.flags:
            return self.fields.flag(name, kind.flags[name])
        return self.fields.size(name, kind.optional.get(name), low=0 if name in kind.optional else self.low)


def read_mixer(fields: Fields, form: Form) -> Mixer:
    """Return what a form lists, with the sizes of a config."""
    sizes = Sizes(fields)
    return Mixer(
        name=form.name,
        what=form.what,
        window=sizes(form.window) if sizes(form.window_cache) else None,
        tensors=tuple(sizes.tensors(form.tensors)),
        kv_values=sizes(form.cache),
        window_values=sizes(form.window_cache),
        state_values=sizes(form.state),
        values_per_pair=sizes(form.pair),
    )
