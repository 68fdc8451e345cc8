"""Figures: what they show is what was given, and they can be read."""

import itertools

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.collections import QuadMesh
from numpy.testing import assert_allclose, assert_array_equal

from sdcastruct import CRF, plotting
from sdcastruct.models import ChainModel
from sdcastruct.solvers import SDCA

X = [[["a"], ["b", "a"], ["c"]], [["b"], ["c"]], [["x"], ["a"]]]
Y = [["B-X", "I-X", "O"], ["O", "O"], ["O", "B-X"]]


@pytest.fixture(autouse=True)
def _closed():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def crf():
    return CRF(C=3, random_state=0, forbidden="iob2").fit(X, Y, X, Y)


@pytest.fixture(scope="module")
def loaded(crf, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "m"
    crf.save(path)
    return CRF.load(path)


def with_labels(labels):
    """Return an estimator that knows these labels."""
    labels = list(labels)
    return CRF(random_state=0, max_epochs=2).fit([[["a"]] * len(labels)] * 2, [labels] * 2)


@pytest.mark.parametrize(("x", "name"), plotting.AXES.items())
def test_convergence(crf, x, name):
    ax = plotting.convergence(crf, x=x)
    history, (line, certified) = crf.history_, ax.get_lines()
    assert ax.get_xlabel() == name
    assert ax.get_yscale() == "log"
    assert_array_equal(line.get_xdata(), history[x])
    known = ~np.isnan(history.gap)
    assert_array_equal(line.get_ydata(), np.where(known, history.gap, history.gap_estimate))
    assert_array_equal(certified.get_ydata(), history.gap[known])
    assert ax.get_legend() is None


def test_convergence_of_several_runs(crf):
    problem = ChainModel(2, 1).bind([np.ones((2, 1))] * 2, [[0, 1]] * 2)
    result = SDCA(random_state=0).solve(problem, certify_every=1)
    ax = plotting.convergence({"problem": result, "estimator": crf}, optimum=result.dual)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["problem", "estimator"]
    assert ax.get_ylabel() == "primal suboptimality"
    assert_array_equal(ax.get_lines()[0].get_ydata(), result.history.primal - result.dual)
    assert plotting.convergence([result, crf], ax=ax) is ax


def test_dev_accuracy(crf):
    ax = plotting.dev_accuracy(crf)
    (line,) = ax.get_lines()
    assert_array_equal(line.get_ydata(), 100 * crf.history_.dev_accuracy)
    with pytest.raises(ValueError, match="no dev_accuracy: expected a fit with X_dev and y_dev"):
        plotting.dev_accuracy(CRF(random_state=0).fit(X, Y))


def test_transitions(crf):
    ax = plotting.transitions(crf)
    (mesh,) = (child for child in ax.get_children() if isinstance(child, QuadMesh))
    weights = crf.transition_features_
    drawn = dict(zip(itertools.product(crf.classes_, repeat=2), mesh.get_array().flat, strict=True))
    assert drawn.pop(("O", "I-X")) is np.ma.masked
    for pair, weight in drawn.items():
        assert weight == weights[pair]
    assert mesh.norm.vmin == -mesh.norm.vmax == -max(map(abs, drawn.values()))
    assert_allclose(mesh.cmap(mesh.norm(0.0))[:3], 1.0, atol=0.04)  # zero is white
    assert [text.get_text() for text in ax.texts] == [f"{weight:.1f}" for weight in drawn.values()]
    assert ax.patch.get_hatch()
    assert ax.get_legend().get_texts()[0].get_text() == "forbidden"


@pytest.mark.parametrize("n_labels", [1, 2, 9, 22, 50, 120])
@pytest.mark.parametrize("own_axes", [False, True])
def test_transitions_can_be_read(n_labels, own_axes):
    names = [f"LABEL-{k}" for k in range(n_labels)]
    crf = with_labels(names)
    given = pyplot.subplots(figsize=(4, 4))[1] if own_axes else None
    ax = plotting.transitions(crf, ax=given)
    ax.figure.canvas.draw()
    ticks = ax.get_yticklabels()
    assert {tick.get_text() for tick in ticks} <= set(crf.classes_)
    if n_labels <= (22 if own_axes else 50):
        assert [tick.get_text() for tick in ticks] == crf.classes_
    for labels in (ticks, ax.get_xticklabels()):
        boxes = [label.get_window_extent() for label in labels]
        assert not any(a.overlaps(b) for a, b in itertools.pairwise(boxes))
        assert all(label.get_fontsize() >= 6 for label in labels)
    cell = ax.transData.transform([[0, 0], [1, 1]])
    for text in ax.texts:
        assert text.get_window_extent().width < np.abs(cell[1] - cell[0]).min()
    assert bool(ax.texts) == (n_labels <= (2 if own_axes else 9))
    assert ax.get_legend() is None


def test_labels_are_no_mathematics():
    crf = with_labels(["$x_{$", "$\\frac$", "a" * 40, "<b>&"])
    ax = plotting.transitions(crf)
    ax.figure.canvas.draw()
    names = [tick.get_text() for tick in ax.get_yticklabels()]
    assert names == ["$\\frac$", "$x_{$", "<b>&", "a" * 15 + "…"]


def test_block_gaps(crf):
    gaps = np.random.default_rng(0).lognormal(sigma=2.0, size=1000)
    ax = plotting.block_gaps(gaps)
    assert sum(bar.get_height() for bar in ax.patches) == 1000
    assert ax.get_xscale() == "log"
    (marked,) = ax.get_lines()
    assert_array_equal(marked.get_xdata(), np.sort(gaps)[::-1][:10])
    (legend,) = ax.get_legend().get_texts()
    assert legend.get_text().startswith(f"the 10 largest; sequence {np.argmax(gaps)} has ")
    (marked,) = plotting.block_gaps(crf).get_lines()
    assert_array_equal(marked.get_xdata(), [crf.suspects_[0][1]])


@pytest.mark.parametrize(
    ("gaps", "scale"),
    [
        ([0.0, 0.0, 0.0], "linear"),
        ([2.0], "linear"),
        ([1.0, 1.0, 2.0], "linear"),
        ([0.0, 1.0, 2.0], "linear"),
        ([-1e-16, 1e-12, 5.0], "log"),
    ],
)
def test_block_gaps_of_all_sizes(gaps, scale):
    ax = plotting.block_gaps(gaps)
    ax.figure.canvas.draw()
    assert ax.get_xscale() == scale
    assert sum(bar.get_height() for bar in ax.patches) == len(gaps)


@pytest.mark.parametrize(
    ("gaps", "message"),
    [
        ([], r"gaps have shape \(0,\), expected \(n,\)"),
        ([[1, 2.0]], r"gaps have shape \(1, 2\), expected \(n,\)"),
        ([1.0, np.nan], r"gaps\[1\] is not finite"),
    ],
)
def test_bad_gaps(gaps, message):
    with pytest.raises(ValueError, match=message):
        plotting.block_gaps(gaps)


def test_unknown_axis():
    for draw in (plotting.convergence, plotting.dev_accuracy):
        with pytest.raises(ValueError, match="x='time': expected one of 'epoch'"):
            draw([], x="time")


DRAW = (plotting.convergence, plotting.dev_accuracy, plotting.transitions, plotting.block_gaps)


@pytest.mark.parametrize("draw", DRAW)
def test_not_fitted(draw):
    with pytest.raises(ValueError, match="not fitted yet"):
        draw(CRF())
    assert not pyplot.get_fignums()


def test_loaded_models_have_no_history(loaded):
    for draw, name in ((plotting.convergence, "history_"), (plotting.block_gaps, "suspects_")):
        with pytest.raises(ValueError, match=f"no {name}: CRF.load does not keep it"):
            draw(loaded)
    assert plotting.transitions(loaded).texts


def test_what_has_no_history():
    with pytest.raises(TypeError, match="3 has no history: expected a Result or a fitted CRF"):
        plotting.convergence(3)
