"""Where a distributed run stands: w = sum_k u_k, and the dual from the sums of all parts.

::

    D = 1/n sum_k sum_i s_i H(alpha_i) - lam/2 ||w||^2
    P = 1/n sum_k sum_i s_i loss_i(w) + lam/2 ||w||^2

A certificate takes two calls of all workers. The first recomputes the sums from the dual points,
the second the losses at the w of these sums. If a worker is lost in between, the certificate stays
valid: D is the dual of a point that was feasible, P the primal of the w that is returned, and
between any two of these lies the optimum.
"""

import time
from pathlib import Path

import numpy as np
from sklearn.utils import Bunch

from sdcastruct import archive
from sdcastruct.distributed.cluster import addresses
from sdcastruct.distributed.coupling import Coupling
from sdcastruct.distributed.team import LOST, Team
from sdcastruct.solvers.options import generator
from sdcastruct.solvers.result import Certificate

VERSION = 1
ROUNDS = ("seconds", "work", "coupling", "ratio", "dual", "bytes_out", "bytes_in")
CLOSE = 0.1  # relative gap from which on the weights tell more of a lost block than its start


class DistributedState:
    """Where a run of `DaskSDCA` stands; made by `DaskSDCA.init`.

    Attributes
    ----------
    w : array of shape (dim,)
        Weights, packed.
    n_updates, n_oracle_calls : int
        Steps and calls of the oracle on all workers.
    n_losses : int
        Times that a worker was lost.
    coupling : Coupling
        sigma' and how often the dual has dropped.
    rounds : Bunch of arrays
        What each round has cost: seconds, seconds of work of the slowest worker, sigma', r, the
        dual after it, bytes sent to the workers and received from them.
    """

    def __init__(self, solver, problem, lam, client, w=None):
        self.solver, self.problem, self.lam = solver, problem, lam
        self.refresh_every = solver.sampler.refresh_every
        self.n_updates = self.n_oracle_calls = 0
        self.folder = None
        self.w = None if w is None else np.array(w)
        self.sent = 0.0
        self._rows = []
        self._restart_from = self.w
        self.seeds = np.random.SeedSequence(int(generator(solver.random_state).integers(2**63)))
        parts = problem.parts(solver.n_partitions or _n_workers(client, solver.timeout))
        self.coupling = Coupling(len(parts), solver.coupling)
        self.team = Team(client, parts, solver.timeout, self._load)
        self._rebuild()

    @property
    def n_losses(self):
        return self.team.n_losses

    @property
    def rounds(self):
        columns = zip(*self._rows, strict=True) if self._rows else [()] * len(ROUNDS)
        return Bunch(**{name: np.array(c) for name, c in zip(ROUNDS, columns, strict=True)})

    def epoch(self):
        """Do n steps on all workers together, in several rounds."""
        for which in range(self.solver.rounds):
            self._round(which)

    def estimate(self):
        """Return estimates of (dual, gap) from what the steps have seen."""
        return self.dual, sum(m.gap for m in self.team.members) / self.problem.n_samples

    def certify(self, tell=False):
        """Return exact primal, dual and gap, by a full pass of all workers."""
        self._take(self.team.ask("sums", lambda member: (True, not member.answered)))
        self._rebuild()
        dual, n_losses = self.dual, self.n_losses
        changed = self.w != self.sent
        answers = self.team.ask("losses", lambda m: (m.news(self.w, changed), tell), again=True)
        self._informed(answers)
        self.stale = self.n_losses > n_losses
        loss = sum(answers) / self.problem.n_samples
        return Certificate.of(loss + 0.5 * self.lam * (self.w @ self.w), dual)

    def refresh(self):
        """Certify and tell the samplers all gaps."""
        certificate = self.certify(tell=True)
        self.n_oracle_calls += self.problem.n_samples
        return certificate

    def keep_in(self, folder):
        """Take the checkpoints in a folder for lost parts, from now on."""
        self.team.ask("check_saving", lambda member: ())
        self.folder = Path(folder)

    def save(self, folder, history=None):
        """Let every worker write its part into a folder, then add what the driver knows."""
        self.team.ask("save", lambda member: (self._path(folder, member.number),))
        header = {
            **self._identity(),
            "coupling": self.coupling.memory(),
            "counters": [int(self.n_updates), int(self.n_oracle_calls)],
        }
        archive.write(Path(folder) / "run.npz", "distributed run", VERSION, header, history or {})

    def restore(self, folder):
        """Go on from a folder that `save` has filled; return the history, empty if it has not."""
        run = Path(folder) / "run.npz"
        if not run.exists():
            return {}
        header, history = archive.read(run, "distributed run", VERSION)
        for name, value in self._identity().items():
            if header[name] != value:
                raise ValueError(
                    f"checkpoint {str(folder)!r} belongs to another run: its {name} is "
                    f"{header[name]!r}, expected {value!r}"
                )
        self._take(self.team.ask("restore", lambda member: (self._path(folder, member.number),)))
        self.coupling.remember(header["coupling"])
        self.n_updates, self.n_oracle_calls = header["counters"]
        self._rebuild()
        return history

    def _round(self, which):
        """Send w, let all workers do their steps, add up what they return."""
        started = time.perf_counter()
        if self.stale:
            self._rebuild()
        out, changed = 0, self.w != self.sent

        def arguments(member):
            nonlocal out
            news = member.news(self.w, changed)
            out += news.nbytes
            return news, sigma, which, self.solver.rounds, not member.answered

        before, old, sigma = self.dual, self.w, self.coupling.value
        sums = self.team.ask("round", arguments)
        self._informed(sums)
        self._take(sums)
        self._rebuild()
        known = [s for s in sums if s is not LOST]
        moved = sum(s.moved for s in known)
        ratio = float(np.sum((self.w - old) ** 2) / moved) if moved > 0.0 else 1.0
        if len(known) == len(sums):  # else another point was put in the place of a lost one
            self.coupling.observe(ratio, before, self.dual, self.estimate()[1])
        work = max((s.seconds for s in known), default=0.0)
        received = sum(s.u.nbytes for s in known)
        seconds = time.perf_counter() - started
        self._rows.append((seconds, work, sigma, ratio, self.dual, out, received))

    def _informed(self, answers):
        """Remember which weights the blocks that have answered know."""
        self.sent = self.w
        for member, answer in zip(self.team.members, answers, strict=True):
            member.informed = answer is not LOST

    def _take(self, answers):
        """Take the sums of all members that have not been lost."""
        for member, sums in zip(self.team.members, answers, strict=True):
            if sums is not LOST:
                member.take(sums)
                self.n_updates += sums.n_updates
                self.n_oracle_calls += sums.n_oracle_calls

    def _rebuild(self):
        """Compute w and the dual from the last sums of all parts."""
        members, n = self.team.members, self.problem.n_samples
        w = np.zeros(self.problem.dim)
        for member in members:
            w[member.support] += member.u
        if not np.isfinite(w @ w):
            raise ValueError(
                f"the weights overflow: lam={self.lam!r} is too small or the features are too large"
            )
        self.w, self.stale = w, False
        self.dual = sum(m.entropy for m in members) / n - 0.5 * self.lam * (w @ w)
        _, gap = self.estimate()
        self._restart_from = w if gap <= CLOSE * (self.dual + gap) else None

    def _load(self, number):
        """Return the arguments of `Block.load`: for a part that is loaded, perhaps once more."""
        path = None if self.folder is None else self._path(self.folder, number)
        seed = np.random.default_rng(self.seeds.spawn(1)[0])
        lam_n = self.lam * self.problem.n_samples
        return self.solver.local_solver(seed), lam_n, self._restart_from, path

    def _path(self, folder, number):
        return str(Path(folder).absolute() / f"part-{number:05d}.npz")

    def _identity(self):
        return {
            "lam": self.lam,
            "sampler": repr(self.solver.sampler),
            "n_partitions": len(self.team.members),
            "n_samples": self.problem.n_samples,
        }


def _n_workers(client, timeout):
    """Return the number of workers, which is at least one."""
    client.wait_for_workers(1, timeout=timeout)
    return len(addresses(client))
