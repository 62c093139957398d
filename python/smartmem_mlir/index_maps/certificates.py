"""Evidence for each rewrite, cheap to keep and checked by other means than it was made with.

A rewrite composes views and simplifies the result by the rules of `simplify.py`. Its certificate holds the views as
they were and the view that replaced them; `check` composes the originals as ISL relations, without any of our rules,
and has ISL decide that the relations are equal. Where ISL's budget does not suffice the elements are traced one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from smartmem_mlir.index_maps.compose import compose
from smartmem_mlir.index_maps.errors import IndexMapError, UnprovedRewriteError
from smartmem_mlir.index_maps.text import parse_view, print_view
from smartmem_mlir.index_maps.view import View


@dataclass(frozen=True, slots=True)
class Certificate:
    """The claim that a chain of views, composed, is one view.

    How an operation reads a tensor is a view as well, from its iteration space to the tensor.

    Args:
        chain: The views before the rewrite, consumer first.
        operands: `operands[i]` is the operand of the composition so far that `chain[i + 1]` produces (and whose place
            its own operands take).
        after: The view after the rewrite.
        origin: Which pass or source node asked for it.
        through: Views of one operand that `after` is read through, consumer first; the chain then equals their
            composition with `after`.
        sources: For each operand of the composed chain its number among the operands of `after`, where operands that
            are the same tensor have been made one; -1 for one that is not read, None if all are the same in number and
            order.
    """

    chain: tuple[View, ...]
    operands: tuple[int, ...]
    after: View
    origin: str = ""
    through: tuple[View, ...] = ()
    sources: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if len(self.operands) != len(self.chain) - 1:
            raise IndexMapError(f"a chain of {len(self.chain)} views needs {len(self.chain) - 1} operand numbers")
        if any(len(view.operands) != 1 for view in self.through):
            raise IndexMapError("a view that another is read through has one operand")

    def check(self) -> bool:
        """Whether the claim is true. Both answers are proofs.

        Raises:
            ProofInconclusiveError: ISL's budget is spent and the result is too large to trace.
        """
        from smartmem_mlir.index_maps.isl import prove_chain

        return prove_chain(self.chain, self.operands, self.after, self.through, self.sources)

    def to_json(self) -> dict[str, Any]:
        """The certificate as JSON values; views are in the syntax of `text.py`."""
        content: dict[str, Any] = {
            "origin": self.origin,
            "chain": [print_view(view) for view in self.chain],
            "operands": list(self.operands),
            "after": print_view(self.after),
        }
        if self.through:
            content["through"] = [print_view(view) for view in self.through]
        if self.sources is not None:
            content["sources"] = list(self.sources)
        return content

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Certificate:
        """Reads what `to_json` wrote.

        Raises:
            IndexMapError: It is not a certificate.
        """
        try:
            chain = tuple(parse_view(text) for text in data["chain"])
            operands = tuple(int(operand) for operand in data["operands"])
            through = tuple(parse_view(text) for text in data.get("through", ()))
            sources = tuple(map(int, data["sources"])) if "sources" in data else None
            return Certificate(chain, operands, parse_view(data["after"]), str(data["origin"]), through, sources)
        except (KeyError, TypeError, ValueError) as error:
            raise IndexMapError(f"not a certificate: {error!r}") from error


@dataclass(slots=True)
class CertificateLog:
    """Collects the certificates of one compilation.

    Args:
        checked: Prove each claim when it is recorded, so that no unproved view is ever returned. Costs a few
            milliseconds a rewrite; a compilation without it can have all of them proved afterwards (`failures`).
    """

    checked: bool = False
    certificates: list[Certificate] = field(default_factory=list)

    def compose(self, outer: View, inner: View, operand: int = 0, *, origin: str = "") -> View:
        """As `compose.compose`, and records the claim.

        Raises:
            UnprovedRewriteError: The log is checked and the claim is false.
        """
        after = compose(outer, inner, operand)
        self.record([outer, inner], [operand], after, origin=origin)
        return after

    def record(self, chain: Sequence[View], operands: Sequence[int], after: View, *, origin: str = "") -> Certificate:
        """Records that `chain` composes to `after`; a chain of one view is a simplification of it.

        Raises:
            UnprovedRewriteError: The log is checked and the claim is false.
        """
        certificate = Certificate(tuple(chain), tuple(operands), after, origin)
        if self.checked and not certificate.check():
            raise UnprovedRewriteError(f"a rewrite is wrong: {certificate.to_json()}", node=origin or None)
        self.certificates.append(certificate)
        return certificate

    def failures(self) -> Iterator[Certificate]:
        """The certificates whose claim is false. None are expected, ever."""
        return (certificate for certificate in self.certificates if not certificate.check())
