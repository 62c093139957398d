"""The file of certificates: what it says is proved from its text, and false or damaged text is refused."""

from __future__ import annotations

import dataclasses
import json

import pytest

from smartmem_mlir.index_maps import (
    Box,
    Certificate,
    IndexMapError,
    ProofInconclusiveError,
    View,
    movement,
    movement_claims,
    movement_windows,
)
from smartmem_mlir.index_maps import isl as proofs
from smartmem_mlir.index_maps.evidence import Rewrite, check_rewrites, dump_rewrites, parse_rewrites
from smartmem_mlir.index_maps.movement_claims import MovementClaim
from smartmem_mlir.index_maps.view import UNREAD, Piece

CLAIMS = {
    "linalg.transpose": MovementClaim(
        "linalg.transpose", (("permutation", (2, 0, 1)),), movement.transpose((2, 3, 4), (2, 0, 1))
    ),
    "linalg.broadcast": MovementClaim(
        "linalg.broadcast", (("dimensions", (0, 2)),), View.mapped((4, 3, 5), (3,), [movement.dim(1)])
    ),
    "tensor.expand_shape": MovementClaim("tensor.expand_shape", (), movement.reshape((6, 4), (2, 3, 4))),
    "tensor.collapse_shape": MovementClaim("tensor.collapse_shape", (), movement.reshape((2, 3, 4), (6, 4))),
    "tensor.extract_slice": MovementClaim(
        "tensor.extract_slice",
        (("offsets", (1, 0)), ("sizes", (2, 3)), ("strides", (2, 1))),
        View.mapped((2, 3), (5, 4), [movement.dim(0) * 2 + 1, movement.dim(1)]),
    ),
    "tensor.insert_slice": MovementClaim(
        "tensor.insert_slice",
        (("offsets", (2,)), ("sizes", (3,))),
        View.of(
            (5,),
            [(5,), (3,)],
            [
                Piece(Box((0,), (2,)), 0, (movement.dim(0),)),
                Piece(Box((2,), (5,)), 1, (movement.dim(0) - 2,)),
            ],
        ),
    ),
    "tensor.concat": MovementClaim("tensor.concat", (("dim", 1),), movement.concat([(2, 3), (2, 2)], 1)),
    "tensor.pad": MovementClaim(
        "tensor.pad",
        (("fill", 0.5), ("high", (0, 2)), ("low", (1, 0))),
        movement_windows.pad((4, 5), (1, 0), (0, 2), "constant", 0.5),
    ),
    "linalg.generic": MovementClaim(
        "linalg.generic",
        (("extents", (3, 4)), ("reads", "(d0, d1) -> (d1, 0)"), ("writes", "(d0, d1) -> (d0, d1)")),
        View.mapped((3, 4), (4, 2), [movement.dim(1), movement.const(0)]),
    ),
}


def tampered(view: View) -> View:
    """The view with the last index of its last read reversed, or moved where there is but one."""
    pieces = list(view.pieces)
    at = max(i for i, piece in enumerate(pieces) if isinstance(piece.source, int) and piece.exprs)
    extent = view.operands[pieces[at].source][-1]
    wrong = (*pieces[at].exprs[:-1], -pieces[at].exprs[-1] + (extent - 1))
    pieces[at] = dataclasses.replace(pieces[at], exprs=wrong)
    return view.with_pieces(pieces)


@pytest.mark.parametrize("name", CLAIMS)
def test_an_operation_is_compared_with_what_it_does(name: str) -> None:
    claim = CLAIMS[name]
    assert claim.check()
    assert MovementClaim.from_json(json.loads(json.dumps(claim.to_json()))) == claim
    assert not dataclasses.replace(claim, view=tampered(claim.view)).check()


def test_a_border_of_another_value_is_not_the_border() -> None:
    claim = CLAIMS["tensor.pad"]
    assert not dataclasses.replace(claim, attributes=(("fill", 0.0), *claim.attributes[1:])).check()


def test_operations_that_cannot_be_compared_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    claim = CLAIMS["linalg.transpose"]
    with pytest.raises(IndexMapError, match=r"no definition of 'math\.exp'"):
        dataclasses.replace(claim, operation="math.exp").check()
    with pytest.raises(IndexMapError, match="malformed"):
        dataclasses.replace(claim, attributes=()).check()
    with pytest.raises(IndexMapError, match="not a claim"):
        MovementClaim.from_json({"operation": "x"})
    monkeypatch.setattr(movement_claims, "MAX_ELEMENTS", 10)
    with pytest.raises(ProofInconclusiveError):
        claim.check()


@pytest.mark.parametrize("budget", [proofs.MAX_OPERATIONS, 1])
def test_operands_that_are_one_tensor(budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The two slices of a roll read one tensor: their concatenation is a remainder."""
    monkeypatch.setattr(proofs, "MAX_OPERATIONS", budget)
    joined = movement.concat([(4,), (3,)], 0)
    tail = View.mapped((4,), (7,), [movement.dim(0) + 3])
    head = View.mapped((3,), (7,), [movement.dim(0)])
    rolled = View.mapped((7,), (7,), [(movement.dim(0) + 3) % 7])
    assert Certificate((joined, tail, head), (0, 1), rolled, sources=(0, 0)).check()
    other = View.mapped((4,), (7,), [movement.dim(0)])
    assert not Certificate((joined, other, head), (0, 1), rolled, sources=(0, 0)).check()
    assert not Certificate((joined, tail, head), (0, 1), rolled, sources=(0, UNREAD)).check()
    assert not Certificate((joined, tail, head), (0, 1), rolled, sources=(0, 1)).check()
    assert not Certificate((joined, tail, head), (0, 1), rolled, sources=(0,)).check()
    first = joined.restrict(joined.box.with_axis(0, 0, 4))
    assert Certificate((first,), (), View.identity((4,)), sources=(0, UNREAD)).check()


def test_what_is_read_through_a_split_space() -> None:
    """(m, k) -> (m floordiv 7, k, m mod 7) over m = 7*d0 + d1 is a permutation."""
    space, tensor = (3, 7, 4), (3, 4, 7)
    merged = View.mapped(space, (21, 4), [movement.dim(0) * 7 + movement.dim(1), movement.dim(2)])
    access = View.mapped((21, 4), tensor, [movement.dim(0) // 7, movement.dim(1), movement.dim(0) % 7])
    turned = View.mapped(space, tensor, [movement.dim(0), movement.dim(2), movement.dim(1)])
    assert Certificate((merged, access), (0,), View.identity(tensor), through=(turned,)).check()
    wrong = View.mapped(space, tensor, [movement.dim(0), movement.dim(2), -movement.dim(1) + 6])
    assert not Certificate((merged, access), (0,), View.identity(tensor), through=(wrong,)).check()
    with pytest.raises(IndexMapError, match="one operand"):
        Certificate((merged,), (), merged, through=(movement.concat([(1,), (2,)], 0),))


def rewrites() -> list[Rewrite]:
    windows = movement_windows.window_partition((1, 14, 14, 3), (7, 7))
    back = movement_windows.window_reverse((1, 14, 14, 3), (7, 7))
    same = Certificate((back, windows), (0,), View.identity((1, 14, 14, 3)))
    return [
        Rewrite("smartmem-compose-views", ("block.0",), "smartmem.view", same),
        Rewrite("smartmem-compose-views", ("block.1",), "smartmem.view", same),
        Rewrite("smartmem-compose-views", ("block.1",), "smartmem.view", same),
        Rewrite("smartmem-raise-views", ("block.1", "pad"), "tensor.pad", CLAIMS["tensor.pad"]),
    ]


def test_equal_claims_are_written_and_proved_once() -> None:
    text = dump_rewrites(rewrites())
    content = json.loads(text)
    assert (len(content["claims"]), len(content["rewrites"]), len(content["views"])) == (2, 3, 4)
    assert parse_rewrites(text) == [rewrites()[0], rewrites()[1], rewrites()[3]]
    told: list[int] = []
    assert check_rewrites(parse_rewrites(text), lambda done, count: told.append(count)) == []
    assert told == [2, 2]


def test_corrupted_text_fails_and_names_the_node() -> None:
    text = dump_rewrites(rewrites())
    corrupted = text.replace("(d1 mod 7) * 7 + d2 mod 7", "(d1 mod 7) * 7 + d1 mod 7", 1)
    assert corrupted != text
    failures = check_rewrites(parse_rewrites(corrupted))
    assert [failure.rewrite.nodes for failure in failures] == [("block.0",)]
    corrupted = text.replace("fill 0.5", "fill 1.5", 1)
    assert [failure.rewrite.nodes for failure in check_rewrites(parse_rewrites(corrupted))] == [("block.1", "pad")]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"format": "smartmem-certificates", "version": 2}',
        '{"format": "smartmem-certificates", "version": 1}',
        dump_rewrites(rewrites()).replace('"claim":1', '"claim":7'),
        dump_rewrites(rewrites()).replace('"after":2', '"after":-1'),
        dump_rewrites(rewrites()).replace("view 1x14x14x3", "view 1x14x14xq", 1),
    ],
)
def test_damaged_files_are_refused(text: str) -> None:
    with pytest.raises(IndexMapError):
        parse_rewrites(text)
