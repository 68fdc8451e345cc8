"""Models as files: what goes in comes out, and what is no model is refused."""

import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sdcastruct import CRF
from sdcastruct.cli import main
from sdcastruct.report import write_report

X = [[["a"], ["b", "a"]], [["b"]], [{"w": "x", "n": 2.5}, ["a"]]]
Y = [["B-X", "I-X"], ["O"], ["O", "B-X"]]


@pytest.fixture
def crf():
    return CRF(C=3, random_state=0, forbidden="iob2").fit(X, Y)


def test_round_trip(crf, tmp_path):
    path = tmp_path / "model.crf"
    crf.save(path, extra={"template": "chunking"})
    again = CRF.load(path)
    assert_array_equal(again.coef_, crf.coef_)
    assert again.predict(X) == crf.predict(X)
    assert again.predict_marginals(X) == crf.predict_marginals(X)
    assert again.attributes_ == crf.attributes_
    assert again.state_features_ == crf.state_features_
    assert again.duality_gap_ == crf.duality_gap_
    assert again.get_params() == crf.get_params()
    assert again.extra_ == {"template": "chunking"}
    assert [p.name for p in tmp_path.iterdir()] == ["model.crf"]


def test_a_model_of_arrays(tmp_path):
    arrays = [np.eye(3)[: len(y)] for y in Y]
    crf = CRF(random_state=0).fit(arrays, Y)
    crf.save(tmp_path / "m")
    assert CRF.load(tmp_path / "m").predict(arrays) == crf.predict(arrays)


def test_pruning_drops_small_weights(crf, tmp_path):
    crf.save(tmp_path / "m", prune=0.5)
    weights, pruned = crf.state_features_, CRF.load(tmp_path / "m").state_features_
    assert any(abs(w) > 0.5 for w in weights.values())
    assert any(0.0 < abs(w) <= 0.5 for w in weights.values())
    for name, w in weights.items():
        assert pruned[name] == (w if abs(w) > 0.5 else 0.0)


def test_pruned_weights_have_no_certificate(crf, tmp_path, capsys):
    crf.save(tmp_path / "m", prune=0.5)
    loaded = CRF.load(tmp_path / "m")
    assert np.isnan([loaded.primal_objective_, loaded.dual_objective_, loaded.duality_gap_]).all()
    assert not loaded.converged_
    assert main(["info", str(tmp_path / "m")]) == 0
    assert "certificate      none: weights were pruned after training" in capsys.readouterr().out
    write_report(tmp_path / "report.html", loaded)
    assert "has no certificate" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_labels_that_json_lacks(tmp_path):
    crf = CRF(random_state=0).fit(X[:1], [[("a", 1), ("b", 2)]])
    with pytest.raises(
        TypeError, match=r"classes_ has \('a', 1\): expected labels that JSON knows"
    ):
        crf.save(tmp_path / "m")


def damaged(path, change):
    """Return the path of a file made from the bytes of another."""
    other = path.with_name("damaged")
    other.write_bytes(change(path.read_bytes()))
    return other


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[: len(data) // 2],
        lambda data: b"",
        lambda data: b"word NN B-NP\n",
        lambda data: data[:200] + bytes([data[200] ^ 255]) + data[201:],
    ],
    ids=["truncated", "empty", "text", "flipped bits"],
)
def test_what_is_no_model(crf, tmp_path, change):
    path = tmp_path / "model.crf"
    crf.save(path)
    with pytest.raises(ValueError, match="damaged' is no readable model: "):
        CRF.load(damaged(path, change))


def test_foreign_archives(tmp_path):
    path = tmp_path / "foreign.npz"
    np.savez(path, a=np.ones(3))
    with pytest.raises(ValueError, match=r"foreign.npz' is no readable model"):
        CRF.load(path)
    np.savez(path, header=np.array(json.dumps({"format": "something else"})))
    with pytest.raises(ValueError, match="its format is 'something else'"):
        CRF.load(path)
    model = {"format": "sdcastruct model", "version": 99}
    np.savez(path, header=np.array(json.dumps(model)))
    with pytest.raises(ValueError, match="has version 99, expected 1"):
        CRF.load(path)


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        CRF.load(tmp_path / "nowhere")
