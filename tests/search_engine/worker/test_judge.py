"""The correctness rule by simulation: right kernels pass it, plausible wrong ones do not."""

import math

import pytest

from search_engine.worker.judge import contract, gate, judge, unravel
from search_engine.worker.judge_blocks import block_quantile, row_length
from search_engine.worker.judge_types import Rule

torch = pytest.importorskip("torch")


def drawn(*shape, mean=0.0, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) + mean


def tree_sum(x):
    """Pairwise float32 sum of rows whose length is a power of two."""
    while x.shape[1] > 1:
        x = x[:, ::2] + x[:, 1::2]
    return x[:, 0]


def serial_sum(x, block):
    """A float32 accumulator over blocks, as a looped kernel has it."""
    total = torch.zeros(x.shape[0])
    for start in range(0, x.shape[1], block):
        total = total + tree_sum(x[:, start : start + block])
    return total


def tf32(x):
    bits = x.view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)


@pytest.mark.parametrize("mean", [0.0, 1.0, 300.0])
@pytest.mark.parametrize("length", [256, 4096, 16384])
def test_sums_in_another_order_pass(length, mean):
    x = drawn(64, length, mean=mean)
    expected = x.double().sum(1)
    looped, tree = serial_sum(x, 64), tree_sum(x)
    spread = (
        torch.stack(
            [
                (
                    (x.double() * (1 + 2.0**-24 * torch.sign(drawn(64, length, seed=s)))).sum(1)
                    - expected
                )
                for s in (1, 2, 3)
            ]
        )
        .abs()
        .amax(0)
    )
    rule = Rule(reduction=length, baseline_chain=length, zero_mean=mean == 0)
    assert gate(expected, looped, rule, spread) is None
    for baseline, candidate in ((looped, tree), (tree, looped)):
        assert judge(expected, baseline, candidate, rule, spread).miss is None


def test_a_serial_chain_is_granted_to_atomics_only():
    x = drawn(64, 16384)
    expected, tree = x.double().sum(1), tree_sum(x)
    serial = x.cumsum(1, dtype=torch.float32)[:, -1] + 0.0
    one_by_one = torch.zeros(64)
    for column in x.unbind(1):
        one_by_one = one_by_one + column
    granted = Rule(reduction=16384, terms=16384, chain=16384)
    assert judge(expected, tree, one_by_one, granted).miss is None
    assert judge(expected, tree, serial, granted).miss is None
    assert judge(expected, tree, one_by_one, Rule(reduction=16384)).miss is not None


ROWS = drawn(64, 512)
SOFTMAX = torch.softmax(ROWS, 1)
TRUTH = torch.softmax(ROWS.double(), 1)
ROUNDED = {
    "wrong mask": torch.softmax(ROWS.index_fill(1, torch.tensor([511]), -math.inf), 1),
    "off by one": torch.softmax(ROWS, 1).roll(1, 1),
    "padding counted": ROWS.exp() / (ROWS.exp().sum(1, keepdim=True) + 1),
    "dropped block": ROWS.exp() / ROWS[:, :448].exp().sum(1, keepdim=True),
    "wrong row": torch.softmax(ROWS, 1).roll(1, 0),
    "bf16 exponential": ROWS.bfloat16().exp().float() / ROWS.exp().sum(1, keepdim=True),
    "f16 throughout": torch.softmax(ROWS.half(), 1).float(),
}


@pytest.mark.parametrize("fault", ROUNDED)
def test_wrong_softmaxes_are_caught(fault):
    assert judge(TRUTH, SOFTMAX, ROUNDED[fault], Rule(reduction=512)).miss is not None


def test_right_softmaxes_pass():
    shifted = (ROWS - ROWS.amax(1, keepdim=True)).exp()
    base_two = torch.exp2((ROWS - ROWS.amax(1, keepdim=True)) * math.log2(math.e))
    for candidate in (shifted / shifted.sum(1, keepdim=True),
                      base_two * (1 / base_two.sum(1, keepdim=True))):  # fmt: skip
        judgement = judge(TRUTH, SOFTMAX, candidate, Rule(reduction=512))
        assert judgement.miss is None
        assert 0 < judgement.error <= 1


def test_tf32_products_are_caught_on_zero_mean_data():
    a, b = drawn(64, 2048), drawn(2048, 64, seed=1)
    expected = a.double() @ b.double()
    rule = Rule(reduction=2048, baseline_chain=2048)
    assert judge(expected, a @ b, tf32(a) @ tf32(b), rule).miss is not None
    halves = a[:, :1024] @ b[:1024] + a[:, 1024:] @ b[1024:]
    assert judge(expected, a @ b, halves, rule).miss is None


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_narrow_outputs_may_be_rounded_once_but_not_twice(dtype):
    expected = drawn(64, 512).double() * 3
    once = expected.float().to(dtype)
    other = (expected.float() * (1 + 2.0**-22)).to(dtype)
    rule = Rule()
    assert gate(expected, once, rule) is None
    assert judge(expected, once, other, rule).miss is None
    coarse = expected.to(torch.float8_e5m2).to(dtype)
    assert judge(expected, once, coarse, rule).miss is not None


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_without_a_reference_two_roundings_of_one_value_may_differ(dtype):
    """A few half-way values just above a power of two, among many smaller ones."""
    half = torch.finfo(dtype).eps / 2
    ties = 2.0**-8 * (1 + half * (1 + 2 * torch.arange(3))).double()
    exact = torch.cat([ties, torch.full((4093,), 2.0**-10).double()])
    baseline, candidate = (exact * (1 - 1e-7)).to(dtype), (exact * (1 + 1e-7)).to(dtype)
    assert not torch.equal(baseline, candidate)
    rule = Rule(reduction=64, independent=False)
    assert judge(baseline.double(), baseline, candidate, rule).miss is None
    steps = baseline.view(torch.int16) + 3  # three units in the last place
    assert judge(baseline.double(), baseline, steps.view(dtype), rule).miss is not None


def test_cancellation_is_measured_not_excused():
    """E[x²] - E[x]² is rejected where the baseline is stable, at mean 300."""
    x = drawn(64, 1024, mean=300.0)
    expected = x.double().var(1, correction=0)
    stable = (x - x.mean(1, keepdim=True)).square().mean(1)
    unstable = x.square().mean(1) - x.mean(1).square()
    rule = Rule(reduction=1024, zero_mean=False)
    spread = (
        (x.double() * (1 + 2.0**-24 * torch.sign(drawn(64, 1024, seed=5)))).var(1, correction=0)
        - expected
    ).abs()
    assert gate(expected, stable, rule, spread) is None
    assert judge(expected, stable, unstable, rule, spread).miss is not None


def test_the_gate_finds_one_wrong_element_and_says_where():
    wrong = SOFTMAX.clone()
    wrong[17, 201] *= 1.01
    miss = gate(TRUTH, wrong, Rule(reduction=512, baseline_chain=512))
    assert miss is not None
    assert miss.index == (17, 201)
    assert miss.got == pytest.approx(float(wrong[17, 201]))
    assert miss.expected == pytest.approx(float(TRUTH[17, 201]))


def test_non_finite_patterns_must_agree():
    baseline = SOFTMAX.clone()
    baseline[3] = math.nan
    expected = TRUTH.clone()
    expected[3] = math.nan
    assert judge(expected, baseline, baseline.clone(), Rule()).miss is None
    for value in (0.0, math.inf):
        candidate = baseline.clone()
        candidate[3, 5] = value
        assert judge(expected, baseline, candidate, Rule()).miss.index == (3, 5)


def test_copies_must_be_bit_exact():
    x = drawn(40, 50)
    expected, baseline = x.double().T, x.T.contiguous()
    nudged = baseline.clone()
    nudged[7, 3] = torch.nextafter(nudged[7, 3], torch.tensor(9.0))
    assert judge(expected, baseline, baseline.clone(), Rule()).miss is None
    assert judge(expected, baseline, nudged, Rule()).miss.index == (7, 3)


def test_histograms_must_be_bit_exact():
    counts = torch.bincount(torch.randint(0, 9, (5000,)), minlength=9)
    baseline = counts.to(torch.int32)
    off = baseline.clone()
    off[4] += 1
    assert gate(counts, baseline, Rule()) is None
    assert judge(counts, baseline, baseline.clone(), Rule()).miss is None
    miss = judge(counts, baseline, off, Rule()).miss
    assert miss.index == (4,) and miss.got - miss.expected == 1


def test_fp8_may_be_one_step_off_rarely():
    x = drawn(100, 100).double()
    baseline = x.float().to(torch.float8_e4m3fn)
    codes = baseline.view(torch.uint8).clone()
    codes[0, 0] ^= 1
    assert judge(x, baseline, codes.view(torch.float8_e4m3fn), Rule()).miss is None
    codes[0, 0] = baseline.view(torch.uint8)[0, 0] + 2
    assert judge(x, baseline, codes.view(torch.float8_e4m3fn), Rule()).miss is not None
    many = baseline.view(torch.uint8).clone()
    many[:5] ^= 1
    assert judge(x, baseline, many.view(torch.float8_e4m3fn), Rule()).miss is not None


def test_contract_of_an_output():
    x = torch.zeros(4, 5)
    assert contract(x, x.clone()) is None
    assert "dtype" in contract(x, x.double())
    assert "shape" in contract(x, x[:3])
    assert "strides" in contract(x, torch.zeros(5, 4).T)


def test_a_constantly_larger_error_is_caught_though_each_is_in_bounds():
    expected = drawn(256, 512).double() * 1.1
    baseline = expected.float()
    candidate = (expected * (1 + 2.5 * 2.0**-24)).float()
    assert judge(expected, baseline, candidate, Rule(zero_mean=False)).miss is None
    assert "root mean square" in judge(expected, baseline, candidate, Rule()).miss.reason


def test_blocks_are_local_and_cover_every_element():
    errors = torch.zeros(9, 300)
    errors[8] = 1.0
    quantile = block_quantile(errors)
    assert quantile.shape == errors.shape
    assert float(quantile[0, 0]) == 0 and float(quantile[8, 299]) == 1
    long = torch.zeros(1, 20000)
    long[0, -3000:] = 1.0
    assert float(block_quantile(long)[0, 0]) == 0 and float(block_quantile(long)[0, -1]) == 1


def test_rows_and_indices():
    assert row_length((8, 4096)) == 4096
    assert row_length((100, 16, 2)) == 32
    assert row_length(()) == 1
    assert unravel(23, (2, 3, 4)) == (1, 2, 3)
