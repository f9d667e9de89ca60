"""Losses of JAX and PyTorch over memory maps: the same numbers as in memory, and the file is not read into it."""

from __future__ import annotations

import numpy as np
import pytest

from tiebreak import L2Ball, Problem, SquaredNorm, from_jax, from_torch, minimize


@pytest.fixture
def maps(tmp_path):
    rng = np.random.default_rng(0)
    found = []
    for name, array in (("A", rng.standard_normal((300, 4)).astype(np.float32)), ("b", rng.standard_normal(300))):
        np.save(tmp_path / f"{name}.npy", array)
        found.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    return tuple(found)


def in_memory(maps):
    return tuple(np.array(each) for each in maps)


def jax_squares(data):
    pytest.importorskip("jax")

    def squares(params, batch):
        rows, targets = batch
        return 0.5 * ((rows @ params - targets) ** 2).mean()

    return from_jax(squares, np.zeros(4), data, convex=True, rows=64)


def torch_squares(data):
    torch = pytest.importorskip("torch")
    module = torch.nn.Linear(4, 1, bias=False)
    return from_torch(module, lambda out, targets: 0.5 * ((out[:, 0] - targets) ** 2).mean(), data, convex=True, rows=64)


@pytest.mark.parametrize("make", [jax_squares, torch_squares])
def test_maps_give_the_numbers_of_memory_and_stay_on_disk(make, maps):
    mapped, plain = make(maps), make(in_memory(maps))
    x = np.array([0.5, -1.0, 2.0, 0.1])
    for indices in (None, np.array([3, 3, 299, 0]), np.arange(10, 200)):
        value, gradient = mapped.value_and_gradient(x, indices)
        expected, slope = plain.value_and_gradient(x, indices)
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(gradient, slope, rtol=1e-10)
    for kept, given in zip(mapped.value_and_grad.data, maps, strict=True):
        assert np.shares_memory(np.asarray(kept), given)
    runs = [
        minimize(Problem(SquaredNorm(), loss, L2Ball(1.0)), "sbcgf", max_queries=2000, progress=False)
        for loss in (mapped, plain)
    ]
    np.testing.assert_allclose(runs[0].x, runs[1].x, atol=1e-9)
