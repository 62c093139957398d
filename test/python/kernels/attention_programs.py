"""Attention in every form that models have, as linalg programs with their results.

A tensor's layout is a word of letters: b, h, g are batch and heads, m queries, n keys, d columns of Q and K, e columns
of V. Scores are laid out as their own word says, so that the batch may stand in any place and take any rank.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]


@dataclass(frozen=True)
class AttentionCase:
    """One attention.

    Args:
        name: What is particular about it.
        extents: Extent of each letter.
        query: Layout of Q, and so on for the other tensors.
        keys: Letters that the softmax runs over.
        bias: Layout of what is added to the scores, "" for nothing.
        softmax: "named" (`linalg.softmax`), "divided" (weights are divided), "deferred" (the result is divided),
            "guarded" (divided, and nan becomes 0).
        masked: "" or which scores are -inf: "causal", "rows" for every key of every third query, or "late" for all
            but the last five keys of every other query.
        fused: Whether Q, K and V are slices of one tensor, [batch, row, 3 * heads * columns].
        initial: Whether the scores' contraction adds to a tensor.
    """

    name: str
    extents: dict[str, int]
    query: str = "bmd"
    key: str = "bnd"
    value: str = "bne"
    scores: str = "bmn"
    output: str = "bme"
    keys: str = "n"
    bias: str = ""
    softmax: str = "divided"
    masked: str = ""
    fused: bool = False
    initial: bool = False
    scale: float = 0.25
    inputs: dict[str, Array] = field(default_factory=dict, compare=False)

    def shape(self, letters: str) -> tuple[int, ...]:
        """Shape of a layout."""
        return tuple(self.extents[letter] for letter in letters)

    def arguments(self) -> list[Array]:
        """Q, K, V and what is added, the same in every run."""
        random = np.random.default_rng(sum(map(ord, self.name)))
        layouts = [self.query, self.key, self.value]
        arrays = [random.standard_normal(self.shape(layout), dtype=np.float32) for layout in layouts]
        if self.fused:
            b, m, h, d = self.shape("bmhd")
            arrays = [random.standard_normal((b, m, 3 * h * d), dtype=np.float32)]
        if self.bias:
            arrays.append(random.standard_normal(self.shape(self.bias), dtype=np.float32))
        if self.initial:
            arrays.append(random.standard_normal(self.shape(self.scores), dtype=np.float32))
        if self.masked:
            mask = np.zeros(self.shape("mn"), dtype=np.float32)
            if self.masked == "causal":
                mask[np.triu_indices(mask.shape[0], 1, mask.shape[1])] = -np.inf
            elif self.masked == "late":
                mask[::2, :-5] = -np.inf
            else:
                mask[::3] = -np.inf
            arrays.append(mask)
        return arrays

    def result(self, arguments: list[Array]) -> NDArray[np.float64]:
        """What the program computes, in f64."""
        rest = [array.astype(np.float64) for array in arguments]
        if self.fused:
            b, m, h, d = self.shape("bmhd")
            fused = rest.pop(0)
            q, k, v = (fused[:, :, i * h * d : (i + 1) * h * d].reshape(b, m, h, d) for i in range(3))
        else:
            q, k, v = (rest.pop(0) for _ in range(3))
        products = np.einsum(f"{self.query},{self.key}->{self.scores}", q, k)
        bias = rest.pop(0) if self.bias else None
        if self.initial:
            products = products + rest.pop(0)
        scores = products * np.float32(self.scale)
        for letters, added in ((self.bias, bias), ("mn", rest.pop(0) if self.masked else None)):
            if added is not None:
                scores = scores + np.einsum(f"{letters},{self.scores}->{self.scores}", added, np.ones_like(scores))
        axis = tuple(self.scores.index(letter) for letter in self.keys)
        with np.errstate(invalid="ignore"):
            weights = np.exp(scores - scores.max(axis, keepdims=True))
            weights = weights / weights.sum(axis, keepdims=True)
        if self.softmax == "guarded":
            weights = np.nan_to_num(weights, nan=0.0)
        return np.einsum(f"{self.scores},{self.value}->{self.output}", weights, v)

    def text(self, function: str) -> str:
        """The program."""
        return _Writer(self).function(function)


class _Writer:
    """Writes a case as linalg."""

    def __init__(self, case: AttentionCase) -> None:
        self._case = case
        self._lines: list[str] = []
        self._count = 0

    def type(self, letters: str, element: str = "f32") -> str:
        """A tensor type."""
        return f"tensor<{''.join(f'{extent}x' for extent in self._case.shape(letters))}{element}>"

    def function(self, name: str) -> str:
        """The whole function."""
        case = self._case
        arguments = {"q": self.type(case.query), "k": self.type(case.key), "v": self.type(case.value)}
        if case.fused:
            b, m, h, d = case.shape("bmhd")
            arguments = {"qkv": f"tensor<{b}x{m}x{3 * h * d}xf32>"}
        if case.bias:
            arguments["bias"] = self.type(case.bias)
        if case.initial:
            arguments["initial"] = self.type(case.scores)
        if case.masked:
            arguments["mask"] = self.type("mn")
        self._line("%zero = arith.constant 0.0 : f32")
        self._line("%lowest = arith.constant 0xFF800000 : f32")
        self._line("%first = arith.constant 0 : i64")
        self._line(f"%scale = arith.constant {case.scale} : f32")
        names = {"q": "%q", "k": "%k", "v": "%v"}
        if case.fused:
            b, m, h, d = case.shape("bmhd")
            for i, letter in enumerate("qkv"):
                names[letter] = self._value(
                    f"smartmem.view %qkv at (d0, d1, d2, d3) -> (d0, d1, d2 * {d} + d3 + {i * h * d}) "
                    f": ({arguments['qkv']}) -> tensor<{b}x{m}x{h}x{d}xf32>"
                )
        start = "%initial" if case.initial else self._filled(case.scores, "%zero")
        products = self._contract(names["q"], case.query, names["k"], case.key, start, case.scores)
        scores = self._each(case.scores, [(products, case.scores)], ["%r = arith.mulf %a0, %scale : f32"])
        for added, letters in (("%bias", case.bias), ("%mask", "mn" if case.masked else "")):
            if letters:
                inputs = [(scores, case.scores), (added, letters)]
                scores = self._each(case.scores, inputs, ["%r = arith.addf %a0, %a1 : f32"])
        weights, total = self._weights(scores)
        result = self._contract(
            weights, case.scores, names["v"], case.value, self._filled(case.output, "%zero"), case.output
        )
        if case.softmax == "deferred":
            rows = self._rows()
            inputs = [(result, case.output), (total, rows)]
            result = self._each(case.output, inputs, ["%r = arith.divf %a0, %a1 : f32"])
        signature = ", ".join(f"%{argument}: {type_}" for argument, type_ in arguments.items())
        body = "\n".join(f"  {line}" for line in self._lines)
        type_ = self.type(case.output)
        return f"func.func @{name}({signature}) -> {type_} {{\n{body}\n  return {result} : {type_}\n}}\n"

    def _weights(self, scores: str) -> tuple[str, str]:
        """Weights, and their sum when they are not divided by it."""
        case = self._case
        type_, letters = self.type(case.scores), case.scores
        rows = self._rows()
        if case.softmax == "named":
            empty = self._value(f"tensor.empty() : {type_}")
            axis = letters.index("n")
            softmax = f"linalg.softmax dimension({axis}) ins({scores} : {type_}) outs({empty} : {type_}) -> {type_}"
            return self._value(softmax), ""
        maxima = self._maxima(scores, rows)
        shifted = self._each(letters, [(scores, letters), (maxima, rows)], ["%r = arith.subf %a0, %a1 : f32"])
        weights = self._each(letters, [(shifted, letters)], ["%r = math.exp %a0 : f32"])
        total = self._generic(
            [(weights, letters)], [(self._filled(rows, "%zero"), rows)], ["%r = arith.addf %a0, %o0 : f32"], ["%r"]
        )
        if case.softmax == "deferred":
            return weights, total
        divided = self._each(letters, [(weights, letters), (total, rows)], ["%r = arith.divf %a0, %a1 : f32"])
        if case.softmax == "guarded":
            undefined = self._each(
                letters, [(divided, letters), (divided, letters)], ["%r = arith.cmpf une, %a0, %a1 : f32"], "i1"
            )
            divided = self._each(
                letters,
                [(undefined, letters), (divided, letters)],
                ["%r = arith.select %a0, %zero, %a1 : f32"],
                inputs_elements=("i1", "f32"),
            )
        return divided, total

    def _rows(self) -> str:
        """Letters of the scores without those of keys."""
        return "".join(letter for letter in self._case.scores if letter not in self._case.keys)

    def _maxima(self, scores: str, rows: str) -> str:
        """The maximum, with the position of the first for one key dimension: what importers write, and nothing uses."""
        letters = self._case.scores
        if len(self._case.keys) > 1:
            maximum = ["%r = arith.maximumf %a0, %o0 : f32"]
            return self._generic([(scores, letters)], [(self._filled(rows, "%lowest"), rows)], maximum, ["%r"])
        body = [
            f"%i = linalg.index {letters.index('n')} : index",
            "%i64 = arith.index_cast %i : index to i64",
            "%r = arith.maximumf %a0, %o0 : f32",
            "%greater = arith.cmpf ogt, %a0, %o0 : f32",
            "%at = arith.select %greater, %i64, %o1 : i64",
        ]
        start = self._value(f"tensor.empty() : {self.type(rows, 'i64')}")
        positions = self._value(
            f"linalg.fill ins(%first : i64) outs({start} : {self.type(rows, 'i64')}) -> {self.type(rows, 'i64')}"
        )
        outputs = [(self._filled(rows, "%lowest"), rows), (positions, rows)]
        return self._generic([(scores, letters)], outputs, body, ["%r", "%at"], ("f32", "i64")) + "#0"

    def _contract(self, a: str, a_letters: str, b: str, b_letters: str, start: str, letters: str) -> str:
        body = ["%p = arith.mulf %a0, %a1 : f32", "%r = arith.addf %o0, %p : f32"]
        return self._generic([(a, a_letters), (b, b_letters)], [(start, letters)], body, ["%r"])

    def _each(
        self,
        letters: str,
        inputs: list[tuple[str, str]],
        body: list[str],
        element: str = "f32",
        inputs_elements: tuple[str, ...] = (),
    ) -> str:
        empty = self._value(f"tensor.empty() : {self.type(letters, element)}")
        return self._generic(inputs, [(empty, letters)], body, ["%r"], (element,), inputs_elements)

    def _generic(
        self,
        inputs: list[tuple[str, str]],
        outputs: list[tuple[str, str]],
        body: list[str],
        yielded: list[str],
        elements: tuple[str, ...] = ("f32",),
        inputs_elements: tuple[str, ...] = (),
    ) -> str:
        of_inputs = inputs_elements or ("f32",) * len(inputs)
        of_outputs = elements if len(elements) == len(outputs) else ("f32",) * len(outputs)
        everything = [*inputs, *outputs]
        space = "".join(dict.fromkeys("".join([*(letters for _, letters in reversed(everything))])))
        kept = {letter for _, letters in outputs for letter in letters}
        maps = ", ".join(f"affine_map<({', '.join(space)}) -> ({', '.join(letters)})>" for _, letters in everything)
        kinds = ", ".join('"parallel"' if letter in kept else '"reduction"' for letter in space)
        in_types = [self.type(letters, e) for (_, letters), e in zip(inputs, of_inputs, strict=True)]
        out_types = [self.type(letters, e) for (_, letters), e in zip(outputs, of_outputs, strict=True)]
        ins = f"{', '.join(v for v, _ in inputs)} : {', '.join(in_types)}"
        outs = f"{', '.join(v for v, _ in outputs)} : {', '.join(out_types)}"
        arguments = [f"%a{i}: {e}" for i, e in enumerate(of_inputs)] + [f"%o{i}: {e}" for i, e in enumerate(of_outputs)]
        result = out_types[0] if len(out_types) == 1 else f"({', '.join(out_types)})"
        text = [
            f"linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} ins({ins}) outs({outs}) {{",
            f"^bb0({', '.join(arguments)}):",
            *(f"  {line}" for line in body),
            f"  linalg.yield {', '.join(yielded)} : {', '.join(of_outputs)}",
            f"}} -> {result}",
        ]
        return self._value("\n  ".join(text), len(outputs))

    def _filled(self, letters: str, number: str) -> str:
        empty = self._value(f"tensor.empty() : {self.type(letters)}")
        return self._value(
            f"linalg.fill ins({number} : f32) outs({empty} : {self.type(letters)}) -> {self.type(letters)}"
        )

    def _value(self, text: str, results: int = 1) -> str:
        name = f"%v{self._count}"
        self._count += 1
        self._line(f"{name}{f':{results}' if results > 1 else ''} = {text}")
        return name

    def _line(self, text: str) -> None:
        self._lines.append(text)
