"""The networks written here, piece by piece, against their definitions spelled out in loops."""

from __future__ import annotations

import itertools

import pytest

torch = pytest.importorskip("torch", reason="needs the optional extra [zoo]; PyTorch is no dependency of the compiler")

from smartmem_mlir.zoo.models import autoformer, biformer, conformer, crossformer, cswin, flatten, smt, yolo  # noqa: E402
from smartmem_mlir.zoo.models.layers import partition, relative_position_index, unpartition  # noqa: E402


def randomised(module: torch.nn.Module) -> torch.nn.Module:
    """The module in inference mode, every weight normal."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(0, 0.3, generator=generator)
    return module.eval().requires_grad_(False)


@pytest.mark.parametrize("window", [(2, 3), (6, 1), (1, 9), (6, 9)])
def test_partition(window: tuple[int, int]) -> None:
    x = torch.arange(2 * 6 * 9 * 5).reshape(2, 6, 9, 5)
    windows = partition(x, window)
    h, w = window
    tiles = [
        x[b, i : i + h, j : j + w].reshape(h * w, 5)
        for b, i, j in itertools.product(range(2), range(0, 6, h), range(0, 9, w))
    ]
    assert torch.equal(windows, torch.stack(tiles))
    assert torch.equal(unpartition(windows, window, (6, 9)), x)


def test_relative_position_index() -> None:
    index = relative_position_index(3)
    for a, b in itertools.product(range(9), repeat=2):
        assert index[a, b] == (a // 3 - b // 3 + 2) * 5 + (a % 3 - b % 3 + 2)


def test_shift_mask_separates_what_the_roll_joined() -> None:
    size, window, shift = 8, 4, 2
    origin = torch.arange(size * size).reshape(1, size, size, 1).roll((-shift, -shift), dims=(1, 2))
    windows = partition(origin, (window, window)).squeeze(-1)
    mask = autoformer._shift_mask(size, window, shift)
    for n, a, b in itertools.product(range(4), range(16), range(16)):
        ya, xa, yb, xb = windows[n, a] // size, windows[n, a] % size, windows[n, b] // size, windows[n, b] % size
        together = abs(ya - yb) < window and abs(xa - xb) < window
        assert (mask[n, a, b] == 0) == together


def test_routing_attends_to_the_best_regions() -> None:
    attention = randomised(biformer.RoutingAttention(32, topk=3))
    x = torch.randn(1, 14, 14, 32, generator=torch.Generator().manual_seed(1))
    query, key, value = attention.qkv(x).chunk(3, dim=-1)
    regions = [(slice(2 * i, 2 * i + 2), slice(2 * j, 2 * j + 2)) for i in range(7) for j in range(7)]
    expected = torch.zeros_like(x)
    for here in regions:
        mean = query[0][here].reshape(-1, 32).mean(0)
        affinity = torch.stack([mean @ key[0][there].reshape(-1, 32).mean(0) for there in regions])
        best = [regions[i] for i in affinity.topk(3).indices]
        keys = torch.cat([key[0][there].reshape(-1, 32) for there in best])
        values = torch.cat([value[0][there].reshape(-1, 32) for there in best])
        scores = (query[0][here].reshape(-1, 32) @ keys.T * 32**-0.5).softmax(-1)
        expected[0][here] = (scores @ values).reshape(2, 2, 32)
    local = attention.local(value.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
    torch.testing.assert_close(attention(x), attention.proj(expected + local), rtol=1e-4, atol=1e-4)


def test_long_distance_groups_are_sampled_at_an_interval() -> None:
    block = randomised(crossformer.Block(32, 2, group=3, interval=2, long_distance=True))
    x = torch.randn(1, 6, 6, 32, generator=torch.Generator().manual_seed(1))
    expected = torch.zeros_like(x)
    for i, j in itertools.product(range(2), repeat=2):
        group = x[0, i::2, j::2].reshape(1, 9, 32)
        expected[0, i::2, j::2] = block.attention(group).reshape(3, 3, 32)
    torch.testing.assert_close(block._long(x), expected)


def test_stripes() -> None:
    attention = randomised(cswin.StripeAttention(8, 2, size=6, window=(6, 2)))
    query, key, value = torch.randn(3, 1, 36, 8, generator=torch.Generator().manual_seed(1))
    out = attention(query, key, value).reshape(6, 6, 8)
    stripe = [part.reshape(6, 6, 8)[:, 2:4].reshape(12, 8) for part in (query, key, value)]
    heads = [torch.stack(part.split(4, dim=1)) for part in stripe]
    attended = (heads[0] @ heads[1].transpose(1, 2) * 4**-0.5).softmax(-1) @ heads[2]
    local = attention.position(stripe[2].reshape(1, 6, 2, 8).permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
    expected = attended.transpose(0, 1).reshape(6, 2, 8) + local[0]
    torch.testing.assert_close(out[:, 2:4], expected, rtol=1e-4, atol=1e-4)


def test_focusing_keeps_the_length_and_sharpens_the_direction() -> None:
    attention = randomised(flatten.FocusedLinearAttention(16, 2, 4))
    x = torch.randn(1, 16, 16, generator=torch.Generator().manual_seed(1))
    before = (x.relu() + flatten.EPSILON) / torch.nn.functional.softplus(attention.scale)
    after = attention._focus(x)
    torch.testing.assert_close(after.norm(dim=-1), before.norm(dim=-1))
    assert (after.amax(-1) >= before.amax(-1)).all()


def test_linear_attention_equals_the_quadratic_form() -> None:
    attention = randomised(flatten.FocusedLinearAttention(16, 2, 4))
    x = torch.randn(1, 16, 16, generator=torch.Generator().manual_seed(1))
    key, value = attention.key_value(x).chunk(2, dim=-1)
    query, key = attention._focus(attention.query(x)), attention._focus(key + attention.position)
    heads = []
    for h in range(2):
        part = slice(8 * h, 8 * h + 8)
        weights = query[0, :, part] @ key[0, :, part].T
        weights = weights / (weights.sum(-1, keepdim=True) + 16 * flatten.EPSILON)
        local = attention.local(value[0, :, part].T.reshape(1, 8, 4, 4)).reshape(8, 16).T
        heads.append(weights @ value[0, :, part] + local)
    expected = attention.proj(torch.cat(heads, dim=-1))
    torch.testing.assert_close(attention(x)[0], expected, rtol=1e-3, atol=1e-3)


def test_modulation_interleaves_the_heads() -> None:
    modulation = randomised(smt.Modulation(16))
    seen = []
    modulation.aggregate.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    x = torch.randn(1, 25, 16, generator=torch.Generator().manual_seed(1))
    modulation(x, 5, 5)
    heads = modulation.scale_in(x).transpose(1, 2).reshape(4, 4, 5, 5)
    convolved = [conv(heads[i : i + 1])[0] for i, conv in enumerate(modulation.convs)]
    for channel in range(16):
        torch.testing.assert_close(seen[0][0, channel], convolved[channel % 4][channel // 4])


def test_skew_aligns_distances() -> None:
    tokens = 5
    scores = torch.randn(1, 2, tokens, 2 * tokens - 1)
    skewed = conformer._skew(scores)
    for i, j in itertools.product(range(tokens), repeat=2):
        # Column d of the scores belongs to the distance tokens - 1 - d.
        assert torch.equal(skewed[:, :, i, j], scores[:, :, i, tokens - 1 - (i - j)])


def test_boxes_are_expected_distances_from_cell_centres() -> None:
    head = randomised(yolo.Head(32, (8, 8, 8), 3))
    for branch in [*head.boxes, *head.scores]:
        torch.nn.init.zeros_(branch[-1].weight)
        torch.nn.init.zeros_(branch[-1].bias)
    levels = [torch.randn(1, 8, 32 // stride, 32 // stride) for stride in yolo.STRIDES]
    out = head(levels)
    assert out.shape == (1, 7, 16 + 4 + 1)
    # Equal logits: every distance is the mean of 0 ... 15 cells, so boxes are centred squares of 15 cells.
    torch.testing.assert_close(out[0, :4, 0], torch.tensor([4.0, 4.0, 15 * 8.0, 15 * 8.0]))
    torch.testing.assert_close(out[0, :4, 5], torch.tensor([12.0, 12.0, 15 * 8.0, 15 * 8.0])[[0, 1, 2, 3]])
    torch.testing.assert_close(out[0, :4, 20], torch.tensor([16.0, 16.0, 15 * 32.0, 15 * 32.0]))
    torch.testing.assert_close(out[0, 4:], torch.full((3, 21), 0.5))
