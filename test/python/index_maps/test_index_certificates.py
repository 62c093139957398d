"""Certificates: true claims check, false ones do not, and a written certificate proves the same when read back."""

from __future__ import annotations

import dataclasses
import json

import pytest
from chains import Step, chains
from hypothesis import given, settings
from test_index_compose import composed

from smartmem_mlir.index_maps import (
    Certificate,
    CertificateLog,
    IndexMapError,
    PieceLimitExceeded,
    UnprovedRewriteError,
    View,
    certificates,
    movement,
    movement_windows,
)
from smartmem_mlir.index_maps import isl as proofs
from smartmem_mlir.index_maps.errors import ExpressionLimitExceeded, ProofInconclusiveError
from smartmem_mlir.index_maps.view import Piece


def shifted_windows(log: CertificateLog) -> View:
    shape = (1, 56, 56, 96)
    rolled = movement.roll(shape, (-3, -3), (1, 2))
    return log.compose(movement_windows.window_partition(shape, (7, 7)), rolled, origin="layers.0.blocks.1")


def two_operands(log: CertificateLog) -> View:
    padded = movement_windows.pad((4, 5), (1, 0), (0, 2), "constant", 0.5)
    joined = movement.concat([(3, 7), (5, 7), (2, 7)], 0)
    view = log.compose(joined, padded, 1)
    return log.compose(view, movement.flip((2, 7), (1,)), 2)


@pytest.mark.parametrize("budget", [proofs.MAX_OPERATIONS, 1])
def test_operands_keep_their_places_in_a_chain(budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The middle operand is itself a concat: what comes after it moves by one, what comes before stays."""
    monkeypatch.setattr(proofs, "MAX_OPERATIONS", budget)
    outer, middle = movement.concat([(2,), (4,), (3,)], 0), movement.concat([(1,), (3,)], 0)
    right = movement.concat([(2,), (1,), (3,), (3,)], 0)
    assert Certificate((outer, middle), (1,), right).check()
    assert Certificate((outer, middle, movement.flip((3,), (0,))), (1, 3), right).check() is False
    swapped = right.with_pieces(
        [dataclasses.replace(p, source={2: 3, 3: 2}.get(p.source, p.source)) for p in right.pieces]
    )
    assert not Certificate((outer, middle), (1,), swapped).check()


def test_true_claims_check() -> None:
    log = CertificateLog()
    shifted_windows(log)
    two_operands(log)
    assert len(log.certificates) == 3
    assert list(log.failures()) == []
    assert log.certificates[0].origin == "layers.0.blocks.1"


def tampered(certificate: Certificate) -> list[Certificate]:
    """The claim with one index off by one, with the next operand read, and with another chain."""
    pieces = list(certificate.after.pieces)
    at = next(i for i, p in enumerate(pieces) if isinstance(p.source, int) and p.exprs[-1].dims)
    off = (*pieces[at].exprs[:-1], pieces[at].exprs[-1] + 1)
    moved = [*pieces[:at], dataclasses.replace(pieces[at], exprs=off), *pieces[at + 1 :]]
    wrong = [dataclasses.replace(certificate, after=certificate.after.with_pieces(moved))]
    if len(certificate.after.operands) > 1:
        swapped = [_other_operand(piece, certificate.after) for piece in pieces]
        wrong.append(dataclasses.replace(certificate, after=certificate.after.with_pieces(swapped)))
    return wrong


def _other_operand(piece: Piece, view: View) -> Piece:
    return dataclasses.replace(piece, source=len(view.operands) - 1 - piece.source) if piece.source in (0, 2) else piece


@pytest.mark.parametrize("budget", [proofs.MAX_OPERATIONS, 1])
def test_false_claims_do_not(budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By ISL, and by tracing elements when ISL's budget is spent."""
    log = CertificateLog()
    shifted_windows(log)
    two_operands(log)
    monkeypatch.setattr(proofs, "MAX_OPERATIONS", budget)
    for certificate in log.certificates:
        assert certificate.check()
        for wrong in tampered(certificate):
            if budget == 1 and _leaves_operand(wrong.after):
                with pytest.raises(IndexMapError, match="reads"):  # tracing meets the index that left the operand
                    wrong.check()
            else:
                assert not wrong.check()


def _leaves_operand(view: View) -> bool:
    try:
        view.check_bounds()
    except IndexMapError:
        return True
    return False


def test_a_checked_log_never_returns_an_unproved_view(monkeypatch: pytest.MonkeyPatch) -> None:
    log = CertificateLog(checked=True)
    shifted_windows(log)
    wrong = tampered(log.certificates[0])[0].after
    monkeypatch.setattr(certificates, "compose", lambda outer, inner, operand: wrong)
    with pytest.raises(UnprovedRewriteError, match=r"layers\.0\.blocks\.1.*rewrite is wrong"):
        shifted_windows(log)


@settings(max_examples=60, deadline=None)
@given(chains(5))
def test_chains_of_certificates(chain: list[Step]) -> None:
    """Each step of a random chain is certified, and so is the chain as a whole."""
    log = CertificateLog(checked=True)
    view = chain[0].view
    try:
        for step in chain[1:]:
            view = log.compose(step.view, view)
    except (PieceLimitExceeded, ExpressionLimitExceeded):
        return
    views = [step.view for step in reversed(chain)]
    log.record(views, [0] * (len(views) - 1), view)
    for certificate in log.certificates:
        assert Certificate.from_json(json.loads(json.dumps(certificate.to_json()))) == certificate
    assert view == composed(chain)


def test_a_simplification_is_a_chain_of_one() -> None:
    from smartmem_mlir.index_maps.merge import split_wraps

    view = movement.roll((7, 5), (3,), (0,))
    assert CertificateLog().record([view], [], split_wraps(view)).check()
    assert not CertificateLog().record([view], [], View.identity((7, 5))).check()


def test_too_large_to_decide_is_said_and_not_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proofs, "MAX_OPERATIONS", 1)
    view = movement.roll((2**20, 64), (3,), (0,))
    with pytest.raises(ProofInconclusiveError):
        CertificateLog(checked=True).record([view, view], [0], movement.roll((2**20, 64), (6,), (0,)))


def test_malformed_certificates_are_refused() -> None:
    view = movement.flip((4,), (0,))
    with pytest.raises(IndexMapError, match="needs 1 operand"):
        Certificate((view, view), (), view)
    with pytest.raises(IndexMapError, match="not of shape"):
        Certificate((view, View.identity((5,))), (0,), view).check()
    with pytest.raises(IndexMapError, match="not of shape"):
        Certificate((view, view), (1,), view).check()
    for data in ({}, {"chain": 3}, {"chain": ["x"], "operands": [], "after": "", "origin": ""}):
        with pytest.raises(IndexMapError):
            Certificate.from_json(data)
