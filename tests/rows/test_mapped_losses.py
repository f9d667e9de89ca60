"""Losses of JAX, PyTorch and dictionaries over memory maps: the numbers of memory, and the file is not read into it."""

from __future__ import annotations

import numpy as np
import pytest

from tiebreak import (
    Columns,
    DictionaryLoss,
    JointDictionaryLoss,
    L2Ball,
    Problem,
    SquaredNorm,
    from_jax,
    from_torch,
    minimize,
)
from tiebreak.data import store


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


M, P, N = 6, 4, 9000  # length and number of atoms; points, more than a block of them


@pytest.fixture
def points(tmp_path):
    """Points and codes, one per column, and files in which one follows the other."""
    rng = np.random.default_rng(0)
    A, codes = rng.standard_normal((M, N)), rng.standard_normal((P, N)) * (rng.random((P, N)) < 0.5)
    for name, array in (("A", A), ("codes", codes)):
        np.save(tmp_path / f"{name}.npy", np.asfortranarray(array))
    return A, codes, tmp_path


def as_maps(folder):
    return [np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("A", "codes")]


def as_paths(folder):
    return [folder / "A.npy", str(folder / "codes.npy")]


def as_stores(folder):
    maps = as_maps(folder)
    names = ("points", "weights")
    return [store(each.T, folder / name, seed=None, progress=False) for each, name in zip(maps, names, strict=True)]


@pytest.mark.parametrize("given", [as_maps, as_paths, as_stores])
def test_dictionaries_use_files_in_place_with_the_bits_of_memory(points, given):
    A, codes, folder = points
    there, here = DictionaryLoss(*given(folder)), DictionaryLoss(A, codes)
    for array in (there.points, there.codes):
        base = array
        while base.base is not None and not isinstance(base, np.memmap):
            base = getattr(base.base, "_array", base.base)
        assert isinstance(base, np.memmap)
    x = np.random.default_rng(1).standard_normal(M * P)
    assert all(np.array_equal(*pair) for pair in zip(there.survey(x), here.survey(x), strict=True))
    assert there.lipschitz == here.lipschitz
    domain = Columns(L2Ball(1.0), (M, P))
    runs = [minimize(Problem(SquaredNorm(), each, domain), "sbcgi", max_queries=3 * N, seed=1).x for each in (there, here)]
    assert runs[0].tobytes() == runs[1].tobytes()


def test_dictionaries_take_maps_in_single_precision_and_copy_what_lies_otherwise(points):
    A, codes, folder = points
    np.save(folder / "single.npy", np.asfortranarray(A.astype(np.float32)))
    np.save(folder / "rows.npy", A)
    single, other = (DictionaryLoss(folder / f"{name}.npy", codes) for name in ("single", "rows"))
    assert single.points.dtype == np.float32
    x = np.ones(M * P)
    assert single.value(x) == DictionaryLoss(A.astype(np.float32), codes).value(x)
    assert other.points.flags.owndata and other.value(x) == DictionaryLoss(A, codes).value(x)


def test_surveys_in_blocks_bound_the_true_errors(points):
    A, _, _ = points
    joint = JointDictionaryLoss(A)
    x = np.random.default_rng(2).standard_normal(P * (M + N))
    atoms, codes = x[: P * M].reshape(P, M).T, x[P * M :].reshape(N, P).T
    rest = (atoms.astype(np.longdouble) @ codes - A) / N
    survey = joint.survey(x)
    expected = np.concatenate([(rest @ codes.T).T.ravel(), (atoms.T @ rest).T.ravel()])
    assert abs(survey.value - 0.5 * N * float((rest * rest).sum())) <= survey.value_error < 1e-6 * survey.value
    assert (np.abs(survey.gradient - expected) <= survey.gradient_error).all()


@pytest.mark.parametrize("given", ["nowhere.npy", "A.csv"])
def test_files_that_are_no_arrays_are_named(points, given):
    with pytest.raises(ValueError, match=r"`A` must be an array, a store or the path of a .npy file that exists, got"):
        DictionaryLoss(points[2] / given, points[1])


def test_stores_of_sparse_rows_are_no_points(points):
    import scipy.sparse

    sparse = store(scipy.sparse.csr_array(points[1].T), points[2] / "sparse", seed=None, progress=False)
    with pytest.raises(ValueError, match="`codes` must be a dense matrix, got a store of sparse rows"):
        DictionaryLoss(points[0], sparse)
