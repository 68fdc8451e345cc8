"""Small random chain problems for hypothesis: few enough labelings that enumeration is exact."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from reference import JointProblem
from scipy.sparse import csr_array

from sdcastruct.models import ChainModel


def bounded(low, high):
    """Floats in [low, high], exact zeros among them, that neither overflow nor underflow."""
    return st.floats(low, high, allow_subnormal=False).map(lambda v: 0.0 if abs(v) < 1e-100 else v)


@dataclass
class Chains:
    """Samples with the compiled problem and its enumerated twin."""

    X: list  # dense (T, A) arrays
    Y: list
    n_states: int
    n_features: int
    sparse: bool

    @property
    def model(self):
        """The data-free model."""
        return ChainModel(n_states=self.n_states, n_features=self.n_features)

    @property
    def inputs(self):
        """X as it is given to the package: dense or CSR."""
        return [csr_array(x) for x in self.X] if self.sparse else self.X

    @cached_property
    def problem(self):
        """The compiled problem."""
        return self.model.bind(self.inputs, self.Y)

    @cached_property
    def joint(self):
        """The enumerated problem."""
        return JointProblem(self.X, self.Y, self.n_states)


@st.composite
def chains(draw, min_states=1, max_states=3, max_nodes=5, max_samples=4, low=-2.0):
    """Draw a problem with n <= 4, K <= 3, T <= 5, A <= 3."""
    n_states = draw(st.integers(min_states, max_states))
    n_features = draw(st.integers(1, 3))
    lengths = draw(st.lists(st.integers(1, max_nodes), min_size=1, max_size=max_samples))
    X = [draw(arrays(float, (t, n_features), elements=bounded(low, 2.0))) for t in lengths]
    Y = [draw(arrays(np.intp, t, elements=st.integers(0, n_states - 1))) for t in lengths]
    return Chains(X, Y, n_states, n_features, sparse=draw(st.booleans()))


def weights(dim, size=3.0):
    """Draw w."""
    return arrays(float, dim, elements=bounded(-size, size))


def lambdas():
    """Draw the regularisation."""
    return st.floats(0.05, 2.0)


@st.composite
def distributions(draw, size, positive=True):
    """Draw a point of the simplex of this size, in its interior or with exact zeros."""
    masses = draw(arrays(float, size, elements=bounded(0.001 if positive else 0.0, 1.0)))
    if masses.sum() == 0:
        masses[draw(st.integers(0, size - 1))] = 1.0
    return masses / masses.sum()


@st.composite
def joints(draw, joint_problem, positive=True):
    """Draw one joint distribution over labelings for each sample."""
    return [draw(distributions(len(s.labelings), positive)) for s in joint_problem.samples]


@st.composite
def points(draw, **options):
    """Draw (chains, w, lam): a primal point."""
    data = draw(chains(**options))
    return data, draw(weights(data.joint.dim)), draw(lambdas())


@st.composite
def dual_points(draw, positive=True, **options):
    """Draw (chains, joint distributions, lam): a dual point."""
    data = draw(chains(**options))
    return data, draw(joints(data.joint, positive)), draw(lambdas())
