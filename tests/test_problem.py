"""The bound problem: packing, truth, features and radii, against the feature map's definition."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import ROUNDING, JointProblem, counting_numbers
from scipy.sparse import csr_array, csr_matrix
from strategies import bounded, chains, dual_points, points

from sdcastruct.models import ChainModel
from sdcastruct.problem import Template, side_by_side


@given(chains())
def test_sizes(data):
    n_states, n_features, lengths = data.n_states, data.n_features, list(map(len, data.Y))
    problem = data.problem
    expected = n_features * n_states + n_states**2 + 3 * n_states
    assert problem.dim == data.model.dim == data.joint.dim == expected
    assert problem.n_samples == len(lengths)
    sizes = [t * n_states + (t - 1) * n_states**2 for t in lengths]
    assert problem.n_marginals == sum(sizes)
    assert_array_equal(problem.region_ptr, np.concatenate([[0], np.cumsum(sizes)]))
    positions = np.arange(problem.n_marginals)
    blocks = [positions[problem.block(i)] for i in range(problem.n_samples)]
    assert_array_equal(np.concatenate(blocks), positions)
    assert list(map(len, blocks)) == sizes


@pytest.mark.parametrize(
    ("n_features", "n_states", "dim"),
    # The paper's table prints d rounded; these are the four data sets.
    [(128, 26, 4082), (74658, 22, 1643026), (310983, 9, 2798955), (190458, 45, 8572770)],
)
def test_dimension_of_the_papers_data_sets(n_features, n_states, dim):
    assert ChainModel(n_states=n_states, n_features=n_features).dim == dim


@given(chains())
def test_counting_numbers(data):
    for i, y in enumerate(data.Y):
        assert_array_equal(data.problem.counting(i), counting_numbers(len(y), data.n_states))


@given(chains())
def test_truth_is_the_indicator_of_the_true_labeling(data):
    for i, sample in enumerate(data.joint.samples):
        assert_array_equal(data.problem.truth(i), sample.regions[sample.truth])


@given(dual_points(positive=False))
def test_gather_sums_the_edges_into_one_table(point):
    data, alpha, _ = point
    for i, (sample, joint) in enumerate(zip(data.joint.samples, alpha, strict=True)):
        mu = sample.marginals(joint)
        split = sample.labelings.shape[1] * data.n_states
        pairs = mu[split:].reshape(-1, data.n_states**2)
        transitions = pairs.sum(axis=0) if len(pairs) else []
        expected = np.concatenate([mu[:split], transitions])
        assert_allclose(data.problem.gather(i, mu), expected, rtol=0, atol=ROUNDING)


@given(dual_points(positive=False))
def test_features_of_marginals_are_expected_features(point):
    data, alpha, _ = point
    for i, (sample, joint) in enumerate(zip(data.joint.samples, alpha, strict=True)):
        m = data.problem.gather(i, sample.marginals(joint))
        scale = 1 + np.abs(sample.features).max()
        expected = joint @ sample.features
        assert_allclose(data.problem.features(i, m), expected, rtol=0, atol=ROUNDING * scale)


@given(chains())
def test_features_of_the_truth_are_the_feature_map(data):
    for i, sample in enumerate(data.joint.samples):
        m = data.problem.gather(i, data.problem.truth(i))
        expected = sample.features[sample.truth]
        scale = 1 + np.abs(expected).max()
        assert_allclose(data.problem.features(i, m), expected, rtol=0, atol=ROUNDING * scale)


def shuffled_csr(x, order):
    """Return x as CSR with stored zeros, entries split in two and columns out of order."""
    n_rows, n_columns = x.shape
    columns = np.tile(np.concatenate([order, order]), n_rows)
    values = np.hstack([0.25 * x[:, order], 0.75 * x[:, order]]).ravel()
    pointers = np.arange(n_rows + 1) * 2 * n_columns
    return csr_array((values, columns, pointers), shape=x.shape)


@pytest.mark.parametrize("container", [csr_array, csr_matrix, shuffled_csr])
@given(points(), st.randoms(use_true_random=False))
def test_dense_and_sparse_inputs_are_the_same_problem(container, point, random):
    data, w, _ = point
    order = list(range(data.n_features))
    random.shuffle(order)
    options = [order] if container is shuffled_csr else []
    sparse = data.model.bind([container(x, *options) for x in data.X], data.Y)
    dense = data.model.bind(data.X, data.Y)
    scale = 1 + 60 * np.abs(w).max()
    for i in range(dense.n_samples):
        theta = dense.score(i, w)
        assert_allclose(sparse.score(i, w), theta, rtol=0, atol=ROUNDING * scale)
        m = dense.gather(i, dense.truth(i))
        assert_allclose(sparse.features(i, m), dense.features(i, m), rtol=0, atol=ROUNDING * 10)
    assert_allclose(sparse.radii(), dense.radii(), rtol=ROUNDING, atol=ROUNDING)


@given(points())
def test_problem_owns_its_data(point):
    data, w, _ = point
    X, Y = [x.copy() for x in data.X], [y.copy() for y in data.Y]
    problem = data.model.bind(X, Y)
    before = [problem.score(i, w) for i in range(problem.n_samples)]
    for x, y in zip(X, Y, strict=True):
        x += 1
        y[:] = data.n_states - 1 - y
    for i, theta in enumerate(before):
        assert_array_equal(problem.score(i, w), theta)
        assert_array_equal(problem.truth(i), data.problem.truth(i))


@given(st.one_of(chains(), chains(low=0.0)))
def test_radii_are_upper_bounds(data):
    assert (data.problem.radii() >= data.joint.radii * (1 - ROUNDING)).all()


@given(chains(min_states=2, low=-2.0), st.data())
def test_radii_are_upper_bounds_where_the_papers_recipe_fails(data, source):
    # Appendix C repeats a label that the truth does not use and needs features >= 0. Here the
    # truth of every long enough sample uses all labels, and attributes may be negative.
    Y = [np.arange(len(y)) % data.n_states for y in data.Y]
    X = [x - source.draw(bounded(0, 1)) for x in data.X]
    exact = JointProblem(X, Y, data.n_states).radii
    assert (data.model.bind(X, Y).radii() >= exact * (1 - ROUNDING)).all()


@pytest.mark.parametrize("sizes", [[100.0, -100.0], [100.0, -50.0, -50.0], [-80.0, 80.0, 80.0]])
def test_radii_are_upper_bounds_where_labels_can_turn_features_around(sizes):
    # Opposite attributes under swapped labels: F(x, y) = -F(x, y_i) up to the biases.
    X, Y = [np.array(sizes)[:, None]], [(np.array(sizes) < 0).astype(int)]
    exact = JointProblem(X, Y, 2).radii
    assert (ChainModel(n_states=2, n_features=1).bind(X, Y).radii() >= exact).all()


@given(chains(min_states=2, low=0.0))
def test_radii_are_exact_where_the_papers_recipe_holds(data):
    assume(all(len(set(y)) < data.n_states for y in data.Y))
    assert_allclose(data.problem.radii(), data.joint.radii, rtol=ROUNDING)


def test_a_template_needs_states():
    with pytest.raises(ValueError, match="width=0: expected at least one state"):
        Template(csr_array((1, 1)), [0, 1], [0], 0, 0)


@given(st.integers(0, 5), st.integers(0, 4), st.integers(0, 4), st.integers(0, 2**32 - 1))
def test_side_by_side(n_rows, n_left, n_right, seed):
    rng = np.random.default_rng(seed)
    values = 1.0 if seed % 2 else np.arange(1.0, 1 + n_rows)[:, None]
    left, right = (csr_array(values * (rng.random((n_rows, n)) < 0.5)) for n in (n_left, n_right))
    found = side_by_side(left, right)
    assert found.data.size == left.nnz + right.nnz
    found = csr_array(tuple(found[:3]), found.shape)
    assert_array_equal(found.toarray(), np.hstack([left.toarray(), right.toarray()]))
