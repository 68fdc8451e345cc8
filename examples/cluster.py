"""
Train on a cluster, and lose a worker
=====================================

``CRF(solver="dask")`` trains on the workers of a Dask cluster; here they are two processes on this
machine, which need no set-up. In the second run one of them is killed on the way: its words go to
the worker that takes its place, and the run ends with the same proof of how good the weights are.
"""

import os
import signal

import numpy as np
from distributed import Client, LocalCluster
from matplotlib import pyplot

from sdcastruct import datasets
from sdcastruct.distributed import DaskSDCA, bind
from sdcastruct.models import ChainModel
from sdcastruct.plotting import convergence
from sdcastruct.solvers import SDCA

letters = datasets.load_ocr()
chosen = np.flatnonzero(letters.folds == 0)[:150]
X, y = [letters.X[i] for i in chosen], [letters.y[i] for i in chosen]
model = ChainModel(n_states=26, n_features=128)


def kill_one(row):
    """After the third epoch, kill a worker the hard way."""
    if row.epoch == 3:
        pids = row.state.team.client.run(os.getpid)
        os.kill(next(iter(pids.values())), signal.SIGKILL)


def train_on(client):
    """Train in this process, on two workers, and on two of which one dies."""
    solver = DaskSDCA(client, rounds=2, random_state=0)
    options = {"tol": 1e-2, "certify_every": 1}
    return {
        "one process": SDCA(random_state=0).solve(model.bind(X, y), **options),
        "two workers": solver.solve(bind(model, X, y), **options),
        "one of two killed": solver.solve(bind(model, X, y), **options, callback=kill_one),
    }


# %%
# Workers are processes that import this file, so what starts them must not run there again.

if __name__ == "__main__":
    options = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": "CRITICAL"}
    with LocalCluster(n_workers=2, **options) as cluster, Client(cluster) as client:
        results = train_on(client)
    for name, result in results.items():
        lost = getattr(result.state, "n_losses", 0)
        print(
            f"{name:17s}  {result.n_epochs:2d} epochs, primal {result.primal:.4f}, dual "
            f"{result.dual:.4f}, certified {result.converged}, workers lost: {lost}"
        )

    # %%
    # The words of the lost worker begin anew: the gap rises once. With checkpoints it would not.

    figure, ax = pyplot.subplots(figsize=(6, 3.6), layout="constrained")
    convergence(results, ax=ax)
    figure.savefig("cluster.png", dpi=150)
    print("drawn in cluster.png")
