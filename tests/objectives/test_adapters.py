"""Losses of other libraries: JAX and PyTorch, and the same problem through all of them."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from conftest import linear_data

from tiebreak import (
    SBCGI,
    AssumptionError,
    FiniteSum,
    GradientError,
    L1Ball,
    L2Ball,
    LeastSquares,
    NonFiniteError,
    OnPart,
    OracleError,
    Problem,
    Product,
    SquaredNorm,
    Status,
    Stream,
    certify,
    check_gradient,
    from_jax,
    from_torch,
    minimize,
)
from tiebreak.engine import interpreted
from tiebreak.objectives import accumulate
from tiebreak.objectives.adapters.callables import product_of

needs_jax = pytest.mark.skipif(find_spec("jax") is None, reason="jax is not installed")
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
BOTH = [pytest.param("jax", marks=needs_jax), pytest.param("torch", marks=needs_torch)]

INPUTS, TARGETS = linear_data(3, n=10, d=3)


def squares(params, batch):
    rows, targets = batch
    return 0.5 * ((rows @ params - targets) ** 2).mean()


def half_squares(outputs, targets):
    return 0.5 * ((outputs - targets) ** 2).mean()


def known_facts(A, b):
    return {"convex": True, "lipschitz": LeastSquares(A, b).lipschitz, "floor": 0.0}


def plain(A, b):
    def value_and_grad(x, batch):
        rows, targets = batch
        residual = rows @ x - targets
        return 0.5 * np.mean(residual**2), residual @ rows / len(rows)

    return value_and_grad, lambda indices: (A[indices], b[indices])


def as_function(A, b):
    value_and_grad, rows = plain(A, b)
    return FiniteSum(len(b), A.shape[1], lambda x, indices: value_and_grad(x, rows(indices)), **known_facts(A, b))


def as_jax(A, b):
    return from_jax(squares, np.zeros(A.shape[1]), (A, b), **known_facts(A, b))


def as_torch(A, b):
    import torch

    class Linear(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(A.shape[1]))

        def forward(self, rows):
            return rows @ self.weight

    return from_torch(Linear(), half_squares, (torch.tensor(A), torch.tensor(b)), **known_facts(A, b))


def as_stream(A, b):
    value_and_grad, rows = plain(A, b)
    return Stream(lambda rng, size: rows(rng.integers(len(b), size=size)), value_and_grad, A.shape[1], **known_facts(A, b))


WAYS = {"function": as_function, "jax": as_jax, "torch": as_torch, "stream": as_stream}


@pytest.fixture(scope="module")
def known():
    """The problem in library values, solved."""
    problem = Problem(LeastSquares(*linear_data(1)), LeastSquares(*linear_data(2)), L1Ball(6.0))
    return problem, minimize(problem, max_queries=30_000)


@pytest.mark.parametrize("way", ["function", *BOTH, "stream"])
def test_the_same_problem_reaches_the_same_solution_within_its_bounds(known, way):
    problem, best = known
    other = Problem(WAYS[way](*linear_data(1)), WAYS[way](*linear_data(2)), problem.domain)
    result = minimize(other, max_queries=30_000)
    assert result.success
    f, g = problem.upper.value(result.x), problem.lower.value(result.x)
    assert abs(result.upper - f) <= result.certificate.upper_error + 1e-12
    assert abs(result.lower - g) <= result.certificate.lower_error + 1e-12
    assert f - best.certificate.floors.upper <= result.upper_gap_bound + best.upper_gap_bound + 1e-9
    assert g - best.lower <= result.lower_gap_bound + 1e-12
    if way == "stream":
        assert g - best.lower <= 0.2 * problem.lower.value(np.zeros(18))
    else:
        assert best.method.name == "active-set"  # which knows the curvature of the library's losses alone
        assert result.method.name == "pb-apg"
        same = minimize(problem, "pb-apg", max_queries=30_000)
        np.testing.assert_allclose(result.x, same.x, atol=1e-6)


@pytest.mark.parametrize("way", BOTH)
def test_the_iterates_are_those_of_the_library_s_own_loss(known, way):
    problem, _ = known
    other = Problem(WAYS[way](*linear_data(1)), WAYS[way](*linear_data(2)), problem.domain)
    method = SBCGI(step=1e-2, slack=1e-3, batch_size=4)
    mine, theirs = (minimize(each, method, x0=np.zeros(18), max_iterations=300) for each in (problem, other))
    np.testing.assert_allclose(theirs.x, mine.x, atol=1e-9)
    np.testing.assert_allclose(theirs.lower_gap_bound, mine.lower_gap_bound, rtol=1e-6)


def network(kind):
    """A small network of the library, with parameters in three arrays and a number."""
    if kind == "jax":
        import jax.numpy as jnp

        def loss(params, batch):
            rows, targets = batch
            hidden = jnp.tanh(rows @ params["hidden"]["weight"] + params["hidden"]["bias"])
            return 0.5 * ((hidden @ params["head"][0] + params["head"][1] - targets) ** 2).mean()

        hidden = {"weight": np.zeros((3, 2), dtype=np.float32), "bias": np.zeros(2)}
        return from_jax(loss, {"hidden": hidden, "head": (np.zeros(2), 0.0)}, (INPUTS, TARGETS), convex=False, rows=4)
    import torch

    module = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Tanh(), torch.nn.Linear(2, 1), torch.nn.Flatten(0))
    return from_torch(module, half_squares, (torch.tensor(INPUTS), torch.tensor(TARGETS)), convex=False, rows=4)


@pytest.mark.parametrize("kind", BOTH)
def test_gradients_are_those_of_finite_differences(kind):
    objective, rng = network(kind), np.random.default_rng(0)
    x = rng.standard_normal(objective.dimension)
    for indices in (None, [3, 3, 7]):
        _, gradient = objective.value_and_gradient(x, indices)
        for i, unit in enumerate(np.eye(x.size)):
            ahead, back = (objective.value(x + sign * 1e-6 * unit, indices) for sign in (1, -1))
            assert abs((ahead - back) / 2e-6 - gradient[i]) < 1e-8


@pytest.mark.parametrize("kind", BOTH)
def test_both_points_are_computed_in_one_call(kind):
    objective, rng = network(kind), np.random.default_rng(0)
    x, y, out = rng.standard_normal((3, objective.dimension))
    batch, before, calls = np.array([1, 5, 5]), out.copy(), []
    oracle = type(objective.value_and_grad)
    combine = oracle._call
    try:
        oracle._call = lambda *args: calls.append(1) or combine(*args)
        values = accumulate(objective, batch, x, 0.5, y, -2.0, out)
    finally:
        oracle._call = combine
    (at_x, d_x), (at_y, d_y) = (objective.value_and_gradient(point, batch) for point in (x, y))
    assert calls == [1]
    np.testing.assert_allclose(values, (at_x, at_y), rtol=1e-12)
    np.testing.assert_allclose(out, before + 0.5 * d_x - 2.0 * d_y, atol=1e-12)


@needs_jax
def test_a_pytree_comes_back_in_its_form_and_its_types():
    objective = network("jax")
    x = np.arange(float(objective.dimension))
    params = objective.parameters(x)
    assert list(objective.value_and_grad.shapes) == ["head.0", "head.1", "hidden.bias", "hidden.weight"]
    assert params["head"][0].tolist() == [0.0, 1.0]
    assert isinstance(params["head"], tuple)
    assert (params["hidden"]["weight"].dtype, params["hidden"]["bias"].dtype) == (np.float32, np.float64)
    assert params["hidden"]["weight"].shape == (3, 2)


@needs_jax
def test_jax_keeps_its_own_precision():
    import jax.numpy as jnp

    as_jax(INPUTS, TARGETS).value(np.zeros(3))
    assert jnp.ones(1).dtype == np.float32


@needs_torch
def test_a_result_is_loaded_into_the_module_and_the_rest_of_it_stays():
    import torch

    module = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 1)).eval()
    module[0].requires_grad_(False)
    frozen = module[0].weight.clone()
    data = torch.tensor(INPUTS), torch.tensor(TARGETS)[:, None]
    objective = from_torch(module, torch.nn.functional.mse_loss, data, convex=False)
    assert list(objective.value_and_grad.shapes) == ["1.weight", "1.bias", "2.weight", "2.bias"]
    domain = objective.domain({"2.weight": L1Ball(0.5)}, bound=2.0)
    assert domain.names == "_1_weight _2_weight _2_bias"  # neighbours without a set are one part
    with interpreted():
        result = minimize(Problem(objective, OnPart(SquaredNorm(), "_2_bias"), domain), "sbcgi", max_iterations=20)
    assert objective.load(result) is module
    assert module[2].weight.abs().sum() <= 0.5 + 1e-6
    assert module[1].weight.abs().max() <= 2.0
    assert torch.equal(module[0].weight, frozen)
    assert module[2].weight.dtype == torch.float32
    value = torch.nn.functional.mse_loss(module(data[0].float()), data[1].float()).item()
    assert abs(value - result.upper) < 1e-4
    assert objective.parameters(result)["2.weight"].tolist() == module[2].weight.tolist()


@needs_torch
def test_data_sets_and_loaders_are_taken_too():
    import torch

    A, b = linear_data(1)
    expected = as_torch(A, b).value(np.ones(18))
    module = as_torch(A, b).value_and_grad.module

    class Rows(torch.utils.data.Dataset):
        def __len__(self):
            return len(b)

        def __getitem__(self, i):
            return A[i], b[i]

    tensors = torch.utils.data.TensorDataset(torch.tensor(A), torch.tensor(b))
    for data in (Rows(), tensors):
        assert from_torch(module, half_squares, data).value(np.ones(18)) == pytest.approx(expected, rel=1e-12)
    loader = torch.utils.data.DataLoader(tensors, batch_size=5, shuffle=True)
    lower = from_torch(module, half_squares, loader, convex=True)
    result = minimize(Problem(SquaredNorm(), lower, L1Ball(2.0)), max_queries=500)
    assert result.status is Status.QUERIES
    assert abs(result.lower - LeastSquares(A, b).value(result.x)) <= result.certificate.lower_error


@needs_jax
def test_a_stream_may_have_a_loss_in_jax():
    A, b = linear_data(2)

    def draw(rng, size):
        taken = rng.integers(len(b), size=size)
        return A[taken], b[taken]

    ends = iter(range(60))

    def ending(rng, size):
        next(ends)
        return draw(rng, size)

    results = []
    for source in (draw, ending):
        objective = from_jax(squares, np.zeros(18), source, convex=True)
        assert objective.endless
        results.append(minimize(Problem(SquaredNorm(), objective, L1Ball(2.0)), max_queries=400, seed=1))
    assert [result.status for result in results] == [Status.QUERIES, Status.ENDED]


@pytest.mark.parametrize("kind", BOTH)
def test_limits_of_samples_are_passed_on_to_a_stream_and_refused_for_data(kind):
    module = as_torch(INPUTS, TARGETS).value_and_grad.module if kind == "torch" else None

    def make(data, **known):
        if kind == "jax":
            return from_jax(squares, np.zeros(3), data, convex=True, **known)
        return from_torch(module, half_squares, data, convex=True, **known)

    def draw(rng, size):
        taken = rng.integers(len(TARGETS), size=size)
        return INPUTS[taken], TARGETS[taken]

    known = {"value_range": (0.0, 1e3), "gradient_bound": 1e3}
    stream = make(draw, **known)
    assert (stream.value_range, stream.gradient_bound) == ((0.0, 1e3), 1e3)
    assert not certify(Problem(SquaredNorm(), stream, L1Ball(1.0)), np.zeros(3), samples=100).approximate
    low = make(draw, value_range=(0.0, 1e3), gradient_bound=1e-9)
    with pytest.raises(AssumptionError, match="contradicts `gradient_bound` = 1e-09"):
        certify(Problem(SquaredNorm(), low, L1Ball(1.0)), np.zeros(3), samples=100)
    for name, value in known.items():
        with pytest.raises(ValueError, match=f"^`{name}` is for streams, and all samples of this loss are known"):
            make((INPUTS, TARGETS), **{name: value})


@needs_jax
def test_a_loss_that_stops_gradients_is_found_if_it_is_checked():
    import jax

    def stopped(params, batch):
        return squares(jax.lax.stop_gradient(params), batch)

    assert check_gradient(from_jax(squares, np.zeros(3), (INPUTS, TARGETS)), np.ones(3)).comparisons
    with pytest.raises(GradientError, match="the gradient of `.*stopped` is not that of its values"):
        check_gradient(from_jax(stopped, np.zeros(3), (INPUTS, TARGETS)), np.ones(3))


def test_an_objective_of_a_part_finds_its_own_variables():
    function = as_function(INPUTS, TARGETS)
    with interpreted():
        domain = Product(u=(L2Ball(1.0), 2), w=(L1Ball(1.0), 3))
        result = minimize(Problem(2.0 * OnPart(function, "w") + SquaredNorm(), SquaredNorm(), domain), max_iterations=3)
    assert function.parameters(result).tolist() == result.parts["w"].tolist()
    with pytest.raises(TypeError, match="has no module to load parameters into: objectives made by from_torch have one"):
        function.load(result)
    with pytest.raises(TypeError, match="has no named parameters"):
        function.domain()


@pytest.mark.parametrize("kind", BOTH)
def test_sets_by_a_name_that_is_none_are_refused(kind):
    with pytest.raises(ValueError, match="`sets` must name parameters, and 'tail' is none: they are "):
        network(kind).domain({"tail": L1Ball(1.0)})


@pytest.mark.parametrize("kind", BOTH)
def test_float32_is_allowed_with_a_warning(kind):
    with pytest.warns(UserWarning, match="float32 keeps 7 digits"):
        if kind == "jax":
            short = from_jax(squares, np.zeros(3), (INPUTS, TARGETS), dtype="float32")
        else:
            module = as_torch(INPUTS, TARGETS).value_and_grad.module
            short = from_torch(module, half_squares, (INPUTS, TARGETS), dtype=np.float32)
    long = LeastSquares(INPUTS, TARGETS)
    error = abs(short.value(np.ones(3)) - long.value(np.ones(3)))
    assert 0.0 < error < 1e-5
    with pytest.raises(ValueError, match="`dtype` must be float64 or float32, got 'int32'"):
        from_jax(squares, np.zeros(3), (INPUTS, TARGETS), dtype="int32")


@needs_jax
@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: from_jax(3, np.zeros(3), (INPUTS, TARGETS)),
            ValueError,
            "`loss` must be a function of \\(params, batch\\)",
        ),
        (lambda: from_jax(squares, {}, (INPUTS, TARGETS)), ValueError, "`params` must hold at least one array"),
        (
            lambda: from_jax(squares, np.arange(3), (INPUTS, TARGETS)),
            ValueError,
            "must hold floating-point numbers, got int64",
        ),
        (lambda: from_jax(squares, np.zeros(3), (INPUTS, TARGETS[1:])), ValueError, "as many each, got lengths \\[9, 10\\]"),
        (lambda: from_jax(squares, np.zeros(4), (INPUTS, TARGETS)), ValueError, "`squares` failed: "),
        (lambda: from_jax(lambda p, b: p, np.zeros(4), INPUTS), ValueError, "`loss` must return a scalar"),
        (
            lambda: from_jax(lambda p, b: p.sum() / 0.0, np.zeros(4), INPUTS).value(np.ones(4)),
            NonFiniteError,
            "returned NaN or infinity in the value",
        ),
    ],
)
def test_what_jax_cannot_take_is_named(make, error, message):
    with pytest.raises(error, match=message):
        make()


@needs_torch
def test_what_torch_cannot_take_is_named():
    import torch

    module, data = torch.nn.Linear(3, 1), (torch.tensor(INPUTS), torch.tensor(TARGETS))
    for wrong, message in (
        ((half_squares, half_squares, data), "`module` must be a torch.nn.Module"),
        ((module, None, data), "`loss` must be a function of \\(outputs, targets\\), got None"),
        (
            (module, half_squares, (data[0], data[1][1:])),
            "the arrays of a batch must have as many rows each, got \\[9, 10\\]",
        ),
        ((torch.nn.Tanh(), half_squares, data), "`module` must have parameters that require a gradient, got none"),
        ((torch.nn.Sequential(module, torch.nn.Dropout()), half_squares, data), "Dropout '1' is in training mode: call"),
        ((module, half_squares, {"inputs": data[0]}), "got a dict"),
    ):
        with pytest.raises(ValueError, match=message):
            from_torch(*wrong)
    with pytest.raises(OracleError, match="raised TypeError: it must return a scalar tensor"):
        from_torch(module, lambda outputs, targets: outputs, data).value(np.zeros(4))


MISSING = """
import sys
import tiebreak
assert not {"jax", "torch", "pandas"} & set(sys.modules), "imported without need"
sys.modules["jax"] = sys.modules["torch"] = sys.modules["pandas"] = sys.modules["pyarrow"] = None
for call in (
    lambda: tiebreak.from_jax(sum, [0.0], [0.0]),
    lambda: tiebreak.from_torch(None, sum, [0.0]),
    lambda: tiebreak.sources.csv(__file__),
    lambda: tiebreak.sources.parquet(__file__),
):
    try:
        call()
    except ImportError as error:
        print(error)
"""


def test_what_is_not_installed_is_named_with_the_command(tmp_path):
    script = tmp_path / "missing.py"
    script.write_text(MISSING)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.partition(" (")[0] for line in lines] == [
        'from_jax needs jax: pip install "tiebreak[jax]"',
        'from_torch needs torch: pip install "tiebreak[torch]"',
        'CSV files are read by pandas: pip install "tiebreak[pandas]"',
        'Parquet files are read by pyarrow: pip install "tiebreak[parquet]"',
    ]


def test_names_of_parameters_that_differ_in_signs_only_are_an_error():
    with pytest.raises(ValueError, match="`sets` must have names that differ in letters and digits, got 'a_b' twice"):
        product_of({"a.b": (4,), "a_b": (3,)}, {"a.b": L1Ball(1.0)}, 1e3)
    assert product_of({"a": (4,), "b": (3,), "c": (2,)}, {"b": L1Ball(1.0)}, 1e3).dimension == 9
    assert product_of({"a": (4,), "b": (3,), "c": (2,)}, {"c": L1Ball(1.0)}, 1e3).dimension == 9
