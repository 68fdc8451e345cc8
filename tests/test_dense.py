"""Dense attributes are multiplied in tiles; the results are those of the sparse kernels."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from test_kernels import WIDTHS

from sdcastruct import duality
from sdcastruct.models import ChainModel, MulticlassModel, TreeModel
from sdcastruct.problem import attributes, batch
from sdcastruct.solvers import LBFGS, OEG, SAG, SDCA

LENGTHS = 5, 1, 13, 4, 8, 3


def samples(n_states, n_features, lengths=LENGTHS):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(t, n_features)) for t in lengths]
    for x in X:
        x[rng.random(x.shape) < 0.2] = 0.0
    return X, [rng.integers(n_states, size=t) for t in lengths]


def both(monkeypatch, n_states, n_features, lengths=LENGTHS):
    """Return a problem with dense attributes, and the same one with sparse ones."""
    X, Y = samples(n_states, n_features, lengths)
    model = ChainModel(n_states, n_features)
    dense = model.bind(X, Y)
    monkeypatch.setattr(attributes, "DENSE_PART", 1.0)
    sparse = model.bind(X, Y)
    assert dense.attributes.templates[0].dense
    assert not sparse.attributes.templates[0].dense
    return dense, sparse


@pytest.mark.usefixtures("instruction_set")
@pytest.mark.parametrize("n_states", WIDTHS)
@pytest.mark.parametrize("n_features", [5, 6, 9, 20])  # biases are attributes, too
def test_products(monkeypatch, n_states, n_features):
    twice = 2 * (n_features + 3)
    lengths = (*LENGTHS, twice, twice + 1)
    dense, sparse = both(monkeypatch, n_states, n_features, lengths)
    rng = np.random.default_rng(1)
    w = rng.normal(size=dense.dim)
    for i in range(dense.n_samples):
        theta = sparse.score(i, w)
        assert_allclose(dense.score(i, w), theta, rtol=1e-12, atol=1e-12)
        m = rng.normal(size=theta.size)
        features = sparse.features(i, m)
        assert_allclose(dense.features(i, m), features, rtol=1e-12, atol=1e-12)
        # The last chain has more nodes than twice its attributes.
        assert_allclose(dense.features_norm2(i, m), features @ features, rtol=1e-12)
    assert_allclose(dense.radii(), sparse.radii(), rtol=1e-12)
    m = rng.normal(size=dense.n_slot_marginals)
    found, expected = np.empty((2, dense.dim))
    batch.conjugate_weights(dense, m, 0.3, found)
    batch.conjugate_weights(sparse, m, 0.3, expected)
    assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("solver", [SDCA(random_state=0), OEG(random_state=0), SAG(random_state=0)])
def test_solvers(monkeypatch, solver):
    dense, sparse = both(monkeypatch, 3, 10)
    found, expected = (solver.solve(p, tol=0, max_epochs=4) for p in (dense, sparse))
    assert_allclose(found.w, expected.w, rtol=1e-6, atol=1e-8)
    assert_allclose(found.gap, expected.gap, rtol=1e-5)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("solver", [SDCA, SAG], ids=lambda solver: solver.__name__)
@pytest.mark.parametrize("single", [(0,), (7,), (19,), (3, 18, 19)])
def test_samples_without_slots(monkeypatch, solver, single, n_jobs):
    """Single nodes have no edges, and so no attributes of edges."""
    rng = np.random.default_rng(0)
    sizes = [1 if i in single else int(rng.integers(2, 9)) for i in range(20)]
    X = []
    for t in sizes:
        edges = np.array([[v, v + 1] for v in range(t - 1)]).reshape(-1, 2)
        X.append((rng.normal(size=(t, 9)), edges, rng.normal(size=(t - 1, 8))))
    Y = [rng.integers(3, size=t) for t in sizes]
    model = TreeModel(3, n_features=9, n_edge_features=8)
    dense = model.bind(X, Y)
    assert [t.dense for t in dense.attributes.templates[:2]] == [True, True]
    monkeypatch.setattr(attributes, "DENSE_PART", 1.0)
    sparse = model.bind(X, Y)
    w = rng.normal(size=dense.dim)
    for i in range(20):
        theta = sparse.score(i, w)
        assert_allclose(dense.score(i, w), theta, rtol=1e-12, atol=1e-12)
        assert_allclose(dense.features(i, theta), sparse.features(i, theta), atol=1e-10)
    options = {"n_jobs": n_jobs} if solver is SDCA else {}
    results = [
        solver(random_state=0).solve(p, tol=1e-7, max_epochs=2000, **options)
        for p in (dense, sparse)
    ]
    assert all(result.converged for result in results)
    assert_allclose(results[0].primal, results[1].primal, rtol=1e-6)


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_threads(n_jobs):
    """All rows of dense attributes have replicas."""
    X, Y = samples(4, 12, 40 * LENGTHS)
    problem = ChainModel(4, 12).bind(X, Y)
    result = SDCA(random_state=0).solve(problem, tol=1e-6, max_epochs=500, n_jobs=n_jobs)
    assert result.converged
    optimum = LBFGS().solve(problem, tol=1e-9).primal
    assert result.dual <= optimum * (1 + 1e-12)
    assert_allclose(result.w, duality.w_hat(problem, result.state.alpha, 1 / len(X)), atol=1e-10)


def test_norms_do_not_depend_on_threads():
    X, Y = samples(3, 9, 7 * LENGTHS + (50,))
    one, many = (ChainModel(3, 9).bind(X, Y) for _ in range(2))
    one.attributes.prepare_norms()
    many.attributes.prepare_norms(3)
    m = np.random.default_rng(2).normal(size=one.n_slot_marginals)
    ptr = np.asarray(one.attributes.slot_ptr)
    for i in range(one.n_samples):
        own = m[ptr[i] : ptr[i + 1]]
        assert one.features_norm2(i, own) == many.features_norm2(i, own)


def test_which_attributes_are_dense():
    rng = np.random.default_rng(0)

    def is_dense(x, model=None):
        model = model or ChainModel(2, x.shape[1])
        return model.bind([x], [[0] * x.shape[0]]).attributes.templates[0].dense

    x = rng.normal(size=(6, 12))
    assert is_dense(x)
    assert is_dense(csr_array(x))  # however they are given
    assert not is_dense(x[:, :4])  # few columns
    assert not is_dense(np.ones((6, 12)))  # no values to multiply with
    assert not is_dense(x * (rng.random(x.shape) < 0.3))
    tree = TreeModel(2, n_features=12)
    assert tree.bind([(x, [[0, 1]])], [[0] * 6]).attributes.templates[0].dense
    assert MulticlassModel(2, 12).bind(x, [0] * 6).attributes.templates[0].dense
