"""SDCA on the workers of a Dask cluster (CoCoA+, Ma et al. 2015, around the steps of the paper).

Every worker holds a part of the samples and their block of the dual point. An epoch, n steps in
all, is a few rounds; in each all workers get w, do their steps at once, and return their sums, from
which the driver rebuilds w::

    w_k = w + sigma' (u_k - u_k before)   on worker k, step by step
    w   = sum_k u_k                       on the driver

`coupling` has what is to be said about sigma', `state` about certificates, `team` about faults.
"""

import copy

import numpy as np

from sdcastruct.distributed.cluster import check_folder, connected
from sdcastruct.distributed.problem import DistributedProblem, bind
from sdcastruct.distributed.state import DistributedState
from sdcastruct.solvers import SDCA
from sdcastruct.solvers.base import Solver, start_of
from sdcastruct.solvers.options import check_integer, check_number


class DaskSDCA(Solver):
    """Stochastic dual coordinate ascent on a cluster.

    ``solve`` takes what `bind` or `KnownCorpus.bind` returns, and its ``checkpoint`` is a folder
    that the driver and all workers can reach. `n_jobs` must be 1: give Dask a worker per core.

    Parameters
    ----------
    client : distributed.Client, optional
        The cluster. By default that of the current client; if there is none, a cluster of the cores
        of this machine is started, and closed at the end.
    sampler : Sampler, default Gap(non_uniformity=0.8)
        Which sample next, on every worker among its own.
    n_partitions : int, optional
        Into how many parts the samples are divided; by default one for every worker.
    rounds : int, default 8
        How many times in an epoch the workers exchange what they have learned. More rounds need
        fewer epochs and more traffic.
    coupling : float, optional
        sigma' of the first round; by default the number of parts. It adapts itself.
    timeout : float, default 600
        Seconds after which a worker that does not answer is given up.
    random_state : int, numpy.random.Generator or None
        Seed of the sampling. With the same number of parts and no faults, a run can be repeated bit
        for bit.
    **options
        Other options of `SDCA`, whose steps the workers do; `search_every` is 1 by default.
    """

    def __init__(
        self,
        client=None,
        sampler=None,
        n_partitions=None,
        rounds=8,
        coupling=None,
        timeout=600.0,
        random_state=None,
        **options,
    ):
        if n_partitions is not None:
            check_integer("n_partitions", n_partitions, 1)
        check_integer("rounds", rounds, 1)
        if coupling is not None:
            check_number("coupling", coupling, 0.0, np.inf)
        check_number("timeout", timeout, 0.0, np.inf)
        self.client = client
        self.sampler = SDCA(sampler, random_state=random_state, **options).sampler
        self.n_partitions = n_partitions
        self.rounds = rounds
        self.coupling = coupling
        self.timeout = timeout
        self.random_state = random_state
        # The dual is looked at after every round, by entropies that only a search knows.
        self.options = {"search_every": 1, **options}

    def bind(self, model, X, Y):
        """Bind a model to samples in memory."""
        return bind(model, X, Y)

    def connected(self):
        """Return a context manager: the client to work with."""
        return connected(self.client)

    def solve(self, problem, *arguments, **options):
        """Train until the certified gap is at most ``tol * primal``; see `Solver.solve`.

        An epoch is n steps of all workers together. ``checkpoint`` is a folder.
        """
        if not isinstance(problem, DistributedProblem):
            raise TypeError(
                f"problem={problem!r}: expected sdcastruct.distributed.bind(model, X, Y), or "
                "the bind(model) of a corpus"
            )
        with self.connected():
            return super().solve(problem, *arguments, **options)

    def init(self, problem, lam, warm_start=None):
        """Return the state from which training starts; workers load their parts."""
        check_number("lam", lam, 0.0, np.inf)
        _, w = start_of(problem, warm_start)
        with self.connected() as client:
            return DistributedState(self, problem, lam, client, w)

    def check_saving(self, state, checkpoint):
        """Check that the samplers can be saved."""
        state.keep_in(checkpoint)

    def __getstate__(self):
        # A connection cannot be copied; a copy takes the current one.
        return {**vars(self), "client": None}

    def _check_beginning(self, problem, lam, warm_start, resume, checkpoint, checkpoint_every):
        super()._check_beginning(problem, lam, warm_start, resume, checkpoint, checkpoint_every)
        if checkpoint is not None:
            with self.connected() as client:
                check_folder(client, checkpoint)

    def local_solver(self, random_state):
        """Return the solver whose steps a worker does."""
        return SDCA(copy.deepcopy(self.sampler), random_state=random_state, **self.options)
