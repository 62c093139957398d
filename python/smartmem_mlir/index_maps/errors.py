"""What can go wrong with an index map. All of these are refusals: no map is returned that has not been justified."""

from __future__ import annotations

from smartmem_mlir.errors import SmartMemError


class IndexMapError(SmartMemError):
    """The arguments do not describe a map or a view (rank, extent, axis or text is wrong)."""


class IndexOverflowError(IndexMapError):
    """An index, an address or a shape's volume leaves the range of int64."""


class PieceLimitExceeded(IndexMapError):  # noqa: N818 - reads as the event that a pass handles, not as a fault
    """The view would need more pieces than the limit. A pass keeps a copy (or the unfolded views) instead."""


class ExpressionLimitExceeded(IndexMapError):  # noqa: N818 - see PieceLimitExceeded
    """An expression grew past the limit: the factors of the reshapes do not line up. A pass keeps a copy."""


class NotInvertibleError(IndexMapError):
    """The map is not a bijection onto the codomain, or no quasi-affine inverse was found."""


class ProofInconclusiveError(IndexMapError):
    """ISL ran out of its budget and the box is too large to enumerate: neither proved nor refuted."""


class UnprovedRewriteError(IndexMapError):
    """A rewrite's certificate is false. A bug of ours: report it with the certificate, which the message holds."""
