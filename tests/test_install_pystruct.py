"""The script that installs pystruct, and the compiled modules of pystruct that it builds."""

import importlib.util
import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).parent.parent / "tools" / "install_pystruct.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("install_pystruct", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_a_substitution_changes_every_file_that_it_names(script, tmp_path):
    for name in ("a.py", "b/c.py", "d.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("np.int, np.int64, np.float\n")
    script.substitute(tmp_path, script.SUBSTITUTIONS[0]._replace(files="**/*.py"))
    assert (tmp_path / "a.py").read_text() == "int, np.int64, float\n"
    assert (tmp_path / "b/c.py").read_text() == "int, np.int64, float\n"
    assert (tmp_path / "d.txt").read_text() == "np.int, np.int64, np.float\n"


def test_a_substitution_that_finds_nothing_is_an_error(script, tmp_path):
    (tmp_path / "a.py").write_text("np.int64\n")
    with pytest.raises(script.InstallError, match=r"'gone' does not occur in \*\.py"):
        script.substitute(tmp_path, script.Substitution("gone", "here", "*.py", "a reason"))


def test_sources_are_not_written_over_what_exists(tmp_path):
    command = [sys.executable, SCRIPT, "--sources", tmp_path]
    process = subprocess.run(command, capture_output=True, text=True)
    assert process.returncode == 2
    assert f"--sources {tmp_path} exists, expected a new folder" in process.stderr


def test_the_installed_pystruct_has_these_patches(script):
    pytest.importorskip("pystruct")
    assert script.installed_record() == script.record(), "run tools/install_pystruct.py again"


@pytest.mark.parametrize("n_nodes", [1, 2, 5])
def test_chains_are_decoded_as_by_enumeration(n_nodes, rng):
    maxprod = pytest.importorskip("pystruct.inference.maxprod")
    unaries = rng.normal(size=(n_nodes, 3))
    pairs = rng.normal(size=(n_nodes - 1, 3, 3))
    edges = np.stack([np.arange(n_nodes - 1), np.arange(1, n_nodes)], axis=1)

    def score(labels):
        steps = zip(pairs, labels, labels[1:], strict=False)
        return unaries[range(n_nodes), labels].sum() + sum(table[j, k] for table, j, k in steps)

    best = max(itertools.product(range(3), repeat=n_nodes), key=score)
    np.testing.assert_array_equal(maxprod.inference_max_product(unaries, pairs, edges), best)


def test_viterbi_breaks_ties_by_the_lowest_state_and_leaves_the_scores():
    compiled = pytest.importorskip("pystruct.inference._viterbi")
    scores = np.array([[1.0, 1.0], [0.0, 2.0], [3.0, 3.0]])
    np.testing.assert_array_equal(compiled.viterbi(scores, np.zeros((2, 2, 2))), [0, 1, 0])
    np.testing.assert_array_equal(scores, [[1.0, 1.0], [1.0, 3.0], [6.0, 6.0]])


@pytest.mark.parametrize(
    ("scores", "pairs", "message"),
    [
        ((3, 2), (1, 2, 2), r"trans_score has shape \(1, 2, 2\), expected \(2, 2, 2\)"),
        ((3, 2), (2, 2, 3), r"trans_score has shape \(2, 2, 3\), expected \(2, 2, 2\)"),
        ((0, 2), (0, 2, 2), r"score has shape \(0, 2\), expected a node and a state"),
    ],
)
def test_viterbi_refuses_shapes_that_do_not_fit(scores, pairs, message):
    compiled = pytest.importorskip("pystruct.inference._viterbi")
    with pytest.raises(ValueError, match=message):
        compiled.viterbi(np.zeros(scores), np.zeros(pairs))


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.int64, np.uint64])
def test_sums_over_labels(kind, rng):
    compiled = pytest.importorskip("pystruct.models.utils")
    X, labels = rng.normal(size=(7, 4)), rng.integers(3, size=7).astype(kind)
    sums = np.ones((3, 4))
    compiled.crammer_singer_joint_feature(X, labels, sums)
    np.testing.assert_allclose(sums, 1 + np.eye(3)[labels].T @ X, rtol=1e-12)

    unaries, weights = rng.normal(size=(7, 3)), rng.uniform(size=3)
    expected = unaries + weights[labels, None] * (1 - np.eye(3)[labels])
    compiled.loss_augment_unaries(unaries, labels, weights)
    np.testing.assert_array_equal(unaries, expected)


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        ([0, 3], IndexError, "the labels lie between 0 and 3, expected them between 0 and 2"),
        ([-1, 0], IndexError, "the labels lie between -1 and 0, expected them between 0 and 2"),
        ([0, 1, 2], ValueError, r"the labels have shape \(3,\), expected \(2,\)"),
        ([0.0, 1.0], TypeError, "float64"),
    ],
)
def test_sums_refuse_labels_that_do_not_fit(labels, error, message):
    compiled = pytest.importorskip("pystruct.models.utils")
    with pytest.raises(error, match=message):
        compiled.crammer_singer_joint_feature(np.ones((2, 4)), labels, np.ones((3, 4)))
    with pytest.raises(error, match=message):
        compiled.loss_augment_unaries(np.ones((2, 3)), labels, np.ones(3))


def test_sums_refuse_another_number_of_columns():
    compiled = pytest.importorskip("pystruct.models.utils")
    with pytest.raises(ValueError, match="out has 3 columns, expected 4 as in X"):
        compiled.crammer_singer_joint_feature(np.ones((2, 4)), [0, 1], np.ones((2, 3)))


@pytest.mark.parametrize("edges", [[], [[0, 1]], [[0, 1], [1, 2]], [[0, 1], [1, 2], [0, 2]]])
def test_max_product_takes_any_graph_and_returns_energies(edges, rng):
    models = pytest.importorskip("pystruct.models")
    x = rng.normal(size=(3, 4)), np.array(edges, dtype=int).reshape(-1, 2)
    model = models.GraphCRF(2, 4, inference_method="max-product", directed=True)
    w = rng.normal(size=model.size_joint_feature)
    labels, energy = model.inference(x, w, return_energy=True)
    assert energy == pytest.approx(-w @ model.joint_feature(x, labels))
