"""pystruct's own tests of its models, with our features and our exact inference in their place.

The archive's test functions run as they are, on classes of which only the constructor,
``initialize`` and the loss are still pystruct's: `joint_feature` is that of packed samples,
`inference` and `loss_augmented_inference` decode them, whatever the inference method. Left out are
the tests of relaxations: they wait for fractional solutions, which exact inference never gives, or
look into the solution of a linear program.
"""

from importlib import import_module

import pytest

pytest.importorskip("pystruct.tests.test_models")

from pystruct import models

from sdcastruct.interop.pystruct import wrap
from sdcastruct.models import Model

RELAXATIONS = {
    "test_graph_crf": ["test_graph_crf_energy_lp_integral"],
    "test_edge_feature_graph_crf": ["test_energy_continuous"],
    "test_grid_crf": ["test_energy_lp", "test_continuous_y"],  # with edge marginals summed up
    "test_directional_crf": ["test_energy"],
}
CLASSES = {
    "test_chain_crf": "ChainCRF",
    "test_graph_crf": "GraphCRF",
    "test_edge_feature_graph_crf": "EdgeFeatureGraphCRF",
    "test_grid_crf": "GridCRF",
    "test_directional_crf": "DirectionalGridCRF",
    "test_multilabel_problem": "MultiLabelClf",
}


def functions(module):
    """Return the names of the test functions of a module of pystruct."""
    found = import_module(f"pystruct.tests.test_models.{module}")
    return [name for name in vars(found) if name.startswith("test_")]


def substitute(original):
    """Return a class of pystruct with our features and our inference."""

    class Substitute(original):
        n_calls = 0  # of all instances

        @property
        def ours(self):
            """The wrapped model, with the state of this one."""
            Substitute.n_calls += 1
            model = original.__new__(original)
            model.__dict__ = self.__dict__
            return wrap(model)

        def joint_feature(self, x, y):
            return Model.joint_feature(self.ours, x, y)

        def inference(self, x, w, relaxed=False, return_energy=False, constraints=None):
            return self.ours.inference(x, w, relaxed, return_energy, constraints)

        def loss_augmented_inference(self, x, y, w, relaxed=False, return_energy=False):
            return self.ours.loss_augmented_inference(x, y, w, relaxed, return_energy)

    return Substitute


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (module, name)
        for module in CLASSES
        for name in functions(module)
        if name not in RELAXATIONS.get(module, [])
    ],
)
def test_of_pystruct(module, name, monkeypatch):
    tests = import_module(f"pystruct.tests.test_models.{module}")
    ours = substitute(getattr(models, CLASSES[module]))
    monkeypatch.setattr(tests, CLASSES[module], ours)
    monkeypatch.setattr(tests, "get_installed", lambda names=("ours",): names[:1], raising=False)
    getattr(tests, name)()
    assert ours.n_calls > 0 or "initial" in name


def test_what_is_left_out_exists():
    for module, names in RELAXATIONS.items():
        assert set(names) <= set(functions(module))
