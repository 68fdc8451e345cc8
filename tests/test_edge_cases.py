"""Inputs and runs at the edge: what must not crash, drift or silently go wrong."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from sdcastruct import duality
from sdcastruct.models import ChainModel, MulticlassModel
from sdcastruct.samplers import Gap, MaxGap, Sampler
from sdcastruct.solvers import SDCA


def chain_problem(n_samples=30, n_states=3, n_features=4, scale=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X = [scale * rng.normal(size=(rng.integers(1, 7), n_features)) for _ in range(n_samples)]
    Y = [rng.integers(n_states, size=len(x)) for x in X]
    return ChainModel(n_states, n_features).bind(X, Y)


@pytest.mark.parametrize("search_every", [1, 2])
@pytest.mark.parametrize("start", [1.0, 0.5, "quadratic", "previous"])
def test_no_start_of_the_line_search_lets_the_dual_drop(start, search_every):
    problem, lam = chain_problem(scale=30.0), 1e-5
    state = SDCA(start=start, search_every=search_every, random_state=0).init(problem, lam)
    dual = duality.dual(problem, state.alpha, lam)
    for i in np.random.default_rng(0).integers(problem.n_samples, size=120):
        state.step(i)
        after = duality.dual(problem, state.alpha, lam)
        assert after >= dual - 1e-12 * abs(dual)
        dual = after


@pytest.mark.parametrize("non_uniformity", [0.8, 1.0])
@pytest.mark.parametrize("lam", [0.5, 0.01])
def test_warm_start_at_another_lam_forgets_the_old_gaps(lam, non_uniformity):
    problem = chain_problem()
    n_warm = n_cold = 0  # with one seed warm starts from so far away may take an epoch more
    for seed in range(3):
        solver = SDCA(sampler=Gap(non_uniformity), random_state=seed)
        first = solver.solve(problem, lam=1.0, tol=1e-9)
        state = solver.init(problem, lam, warm_start=first)
        assert_allclose(state.gaps, duality.block_gaps(problem, state.w, state.alpha), atol=1e-10)
        warm = solver.solve(problem, lam=lam, tol=1e-4, warm_start=first)
        assert warm.converged
        n_warm += warm.n_epochs
        n_cold += solver.solve(problem, lam=lam, tol=1e-4).n_epochs
    assert n_warm < n_cold


def test_warm_start_of_another_shape_is_refused():
    one_node = ChainModel(8, 1).bind([np.ones((1, 1))], [[0]])
    two_nodes = ChainModel(2, 1).bind([np.ones((2, 1))], [[0, 1]])
    assert one_node.n_marginals == two_nodes.n_marginals
    result = SDCA().solve(one_node, max_epochs=2)
    with pytest.raises(ValueError, match=r"warm_start has shape \(96,\), expected weights \(12,\)"):
        SDCA().solve(two_nodes, warm_start=result)


def test_columns_out_of_range_are_refused():
    broken = sparse.csr_matrix((np.ones(1), np.zeros(1, int), [0, 1]), shape=(1, 3))
    broken.indices[0] = 50_000_000
    with pytest.raises(ValueError, match=r"X\[1\] is not a valid sparse matrix"):
        ChainModel(2, 3).bind([np.ones((1, 3)), broken])


@pytest.mark.parametrize("dtype", [np.int8, bool, np.float32])
def test_duplicates_are_summed_as_numbers(dtype):
    twice = sparse.csr_matrix((np.array([100, 100], dtype), [0, 0], [0, 2]), shape=(1, 1))
    problem = ChainModel(2, 1).bind([twice])
    w = np.zeros(problem.dim)
    w[0] = 1.0
    assert problem.score(0, w)[0] == 2 * float(np.array(100, dtype))
    assert twice.nnz == 2


def test_no_attributes_at_all():
    problem = ChainModel(2, 0).bind([np.empty((3, 0))] * 4, [[0, 1, 0]] * 4)
    assert SDCA().solve(problem).converged


def test_decoding_takes_what_binding_takes():
    model = ChainModel(2, 1)
    assert len(model.decode([[[1.0], [2.0]]], np.zeros(model.dim))[0]) == 2
    assert model.marginals([[[1.0], [2.0]]], np.zeros(model.dim))[0][1].shape == (1, 2, 2)


def test_negative_gaps_are_refused():
    sampler = MaxGap(1.0)
    sampler.reset(chain_problem(5), 0.1)
    with pytest.raises(ValueError, match=r"gap=-1.0: expected a number >= 0"):
        sampler.update(0, -1.0)


def test_scales_of_the_wrong_length_are_refused():
    class TooMany(Gap):
        def scale(self, problem, lam):
            return np.ones(100_000)

    with pytest.raises(ValueError, match=r"TooMany.scale returned shape \(100000,\)"):
        SDCA(sampler=TooMany()).solve(chain_problem(5))


def test_reset_must_reach_the_base_class():
    class Forgetful(Gap):
        def reset(self, problem, lam):
            pass

    with pytest.raises(RuntimeError, match=r"Forgetful.reset must call super\(\).reset"):
        SDCA(sampler=Forgetful()).solve(chain_problem(5))


def test_runs_do_not_share_a_sampler():
    class Recorder(Sampler):
        def __init__(self):
            super().__init__()
            self.drawn = []

        def draw(self, rng):
            self.drawn.append(int(rng.integers(self.n_samples)))
            return self.drawn[-1]

    sampler = Recorder()
    result = SDCA(sampler=sampler).solve(chain_problem(5), tol=0, max_epochs=2)
    assert sampler.drawn == []
    assert len(result.state.sampler.drawn) == 10


@pytest.mark.parametrize(("scale", "lam"), [(1e200, 0.1), (1.0, 5e-324)])
def test_overflow_is_an_error(scale, lam):
    with (
        np.errstate(all="ignore"),
        pytest.raises(ValueError, match=f"the weights overflow: lam={lam!r}"),
    ):
        SDCA(epsilon=1.0).solve(chain_problem(scale=scale), lam=lam)


def test_ctrl_c_in_the_last_certificate_keeps_the_result(monkeypatch):
    problem = chain_problem()
    state = SDCA(random_state=0).init(problem, 0.1)

    class Interrupted:
        calls = 0

        def __getattr__(self, name):
            return getattr(state, name)

        def certify(self):
            self.calls += 1
            if self.calls == 1:
                raise KeyboardInterrupt
            return state.certify()

    solver = SDCA()
    monkeypatch.setattr(solver, "init", lambda *arguments: Interrupted())
    result = solver.solve(problem, lam=0.1, max_epochs=0)
    assert result.interrupted
    assert_allclose(result.gap, result.primal - result.dual)


def test_results_can_be_pickled_and_compared():
    result = SDCA(random_state=0).solve(chain_problem(), max_epochs=3)
    copy = pickle.loads(pickle.dumps(result))
    assert copy != result
    assert copy.state is None
    assert_allclose(copy.w, result.w, rtol=0)


def test_refreshing_all_gaps_counts_as_oracle_calls():
    problem = chain_problem(20)
    result = SDCA(sampler=Gap(refresh_every=2)).solve(problem, tol=0, max_epochs=4)
    assert (result.n_updates, result.n_oracle_calls) == (80, 120)


def test_long_attributes_lists_have_the_right_norm():
    # More occurrences in a sample than the Gram matrix takes: summed row by row instead.
    rng = np.random.default_rng(0)
    x = sparse.random(60, 12, density=0.5, random_state=rng, format="csr")
    problem = ChainModel(3, 12).bind([x])
    m = rng.normal(size=60 * 3 + 9)
    features = problem.features(0, m)
    assert_allclose(problem.features_norm2(0, m), features @ features, rtol=1e-13)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_model_without_weights(n_jobs):
    problem = MulticlassModel(n_states=3, n_features=0).bind(np.zeros((4, 0)), [0, 1, 2, 0])
    result = SDCA(random_state=0).solve(problem, n_jobs=n_jobs)
    assert result.converged
    assert result.w.shape == (0,)
    assert_allclose(result.primal, np.log(3))
