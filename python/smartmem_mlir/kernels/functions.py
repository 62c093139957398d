"""Elementary functions on vectors of f32, as straight lines of arithmetic that every lane executes.

Each takes and gives a value of a vector type; the number of lanes is the argument's. Errors are against the exact
result, in units of the last place of the f32 next to it, measured over the range that the function is for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir
from mlir.dialects import arith, vector

_LOG2_E = 1.44269504088896341
_LN2_HIGH = 0.693145751953125
"""ln 2 to 16 bits, so that its product with any exponent is exact."""
_LN2_LOW = 1.42860682030941723e-6
_EXP_QUOTIENT = (
    0.0013814597623422742,
    0.00836871936917305,
    0.04166838899254799,
    0.1666652113199234,
    0.4999999403953552,
    1.0,
    1.0,
)
"""exp(r) for |r| <= ln(2) / 2, highest power first: 1 + r and a least-maximum fit of the rest, relative error 3e-9."""
_ROUND_TO_INTEGER = 1.5 * 2.0**23
"""Added to a small number, leaves no bits for a fraction: the sum's last bits are the rounded number."""
_LEAST_EXPONENT = -87.33654
"""exp of anything less is below the least normal number."""

_ERF_LIMIT = 3.925
"""erf of anything greater is 1 in f32."""
_ERF_NUMERATOR = (
    2.0464040062506683e-06,
    0.00028481215122155845,
    0.0037708680611103773,
    0.05276406928896904,
    0.19055360555648804,
    1.1283791065216064,
)
_ERF_DENOMINATOR = (
    3.805007872870192e-05,
    0.0011634635739028454,
    0.014979802072048187,
    0.11416620016098022,
    0.5022064447402954,
    1.0,
)
"""erf(x) = x * p(x^2) / q(x^2) for |x| <= 3.925, highest powers first, relative error 2e-8."""
_TANH_LIMIT = 8.6
"""tanh of anything greater is within half a unit of the last place of 1."""
_TANH_NUMERATOR = (
    1.4085056676549357e-08,
    2.1124360500834882e-05,
    0.003526526503264904,
    0.13406981527805328,
    1.0,
)
_TANH_DENOMINATOR = (
    8.071729666880856e-07,
    0.00033364712726324797,
    0.025994379073381424,
    0.46740302443504333,
    1.0,
)
"""tanh(x) = x * p(x^2) / q(x^2) for |x| <= 8.6, highest powers first, relative error 1.4e-8."""


def exp(x: ir.Value) -> ir.Value:
    """exp(x) to 0.9 units of the last place; infinities and nan are right.

    Subnormal results are rounded once more, or 0 where the machine flushes them, as it does in IREE's workers.
    """
    low, high = _splat(x, -104.0), _splat(x, 89.0)
    x = _select_less(x, low, low, x)
    x = _select_less(high, x, high, x)
    shifted = vector.fma(x, _splat(x, _LOG2_E), _splat(x, _ROUND_TO_INTEGER))
    exponent = arith.subf(shifted, _splat(x, _ROUND_TO_INTEGER))
    mantissa = _exp_of_rest(x, exponent)
    # 2^n in two factors: n reaches from -150 to 128, farther than one exponent does.
    whole = arith.fptosi(_integers(x), exponent)
    half = arith.shrsi(whole, _integer_splat(x, 1))
    for part in (half, arith.subi(whole, half)):
        bits = arith.shli(arith.addi(part, _integer_splat(x, 127)), _integer_splat(x, 23))
        mantissa = arith.mulf(mantissa, arith.bitcast(x.type, bits))
    return mantissa


def exp_of_nonpositive(x: ir.Value) -> ir.Value:
    """exp(x) for x <= 0 to 0.9 units of the last place; results below the least normal number are 0, nan stays nan."""
    # The rounding constant carries the exponent's bias: the sum's last bits are the exponent field.
    biased = _ROUND_TO_INTEGER + 127.0
    shifted = vector.fma(x, _splat(x, _LOG2_E), _splat(x, biased))
    exponent = arith.subf(shifted, _splat(x, biased))
    bits = arith.shli(arith.bitcast(_integers(x), shifted), _integer_splat(x, 23))
    result = arith.mulf(_exp_of_rest(x, exponent), arith.bitcast(x.type, bits))
    return _select_less(x, _splat(x, _LEAST_EXPONENT), _splat(x, 0.0), result)


def erf(x: ir.Value) -> ir.Value:
    """erf(x) to 6 units of the last place; nan stays nan."""
    return _odd_rational(x, _ERF_LIMIT, _ERF_NUMERATOR, _ERF_DENOMINATOR)


def tanh(x: ir.Value) -> ir.Value:
    """tanh(x) to 6 units of the last place; nan stays nan."""
    return _odd_rational(x, _TANH_LIMIT, _TANH_NUMERATOR, _TANH_DENOMINATOR)


FUNCTIONS: dict[str, Callable[[ir.Value], ir.Value]] = {"math.erf": erf, "math.exp": exp, "math.tanh": tanh}
"""By the operation that each computes."""


def _odd_rational(x: ir.Value, limit: float, numerator: Sequence[float], denominator: Sequence[float]) -> ir.Value:
    """x * p(x^2) / q(x^2), within [-1, 1], of x cut off at the limit."""
    x = _cut_off(x, limit)
    square = arith.mulf(x, x)
    quotient = arith.divf(arith.mulf(x, _polynomial(square, numerator)), _polynomial(square, denominator))
    return _cut_off(quotient, 1.0)


def _cut_off(x: ir.Value, limit: float) -> ir.Value:
    high, low = _splat(x, limit), _splat(x, -limit)
    x = _select_less(high, x, high, x)
    return _select_less(x, low, low, x)


def _polynomial(x: ir.Value, coefficients: Sequence[float]) -> ir.Value:
    """Coefficients with the highest power first."""
    result = _splat(x, coefficients[0])
    for coefficient in coefficients[1:]:
        result = vector.fma(result, x, _splat(x, coefficient))
    return result


def _exp_of_rest(x: ir.Value, exponent: ir.Value) -> ir.Value:
    """exp(x - exponent * ln 2)."""
    rest = vector.fma(exponent, _splat(x, -_LN2_HIGH), x)
    rest = vector.fma(exponent, _splat(x, -_LN2_LOW), rest)
    return _polynomial(rest, _EXP_QUOTIENT)


def _select_less(a: ir.Value, b: ir.Value, then: ir.Value, otherwise: ir.Value) -> ir.Value:
    """`then` where a < b, `otherwise` elsewhere and where one of them is nan."""
    return arith.select(arith.cmpf(arith.CmpFPredicate.OLT, a, b), then, otherwise)


def _splat(like: ir.Value, number: float) -> ir.Value:
    return vector.broadcast(like.type, arith.constant(like.type.element_type, number))


def _integers(like: ir.Value) -> ir.VectorType:
    return ir.VectorType.get(like.type.shape, ir.IntegerType.get_signless(32))


def _integer_splat(like: ir.Value, number: int) -> ir.Value:
    type_ = _integers(like)
    return vector.broadcast(type_, arith.constant(type_.element_type, number))
