"""Samplers that stop their own worker in the middle of a round."""

import os
import signal
from pathlib import Path

from sdcastruct.samplers import Sampler

STEPS = 7  # before one looks at its fuses


class Failing(Sampler):
    """Uniform draws, until a file ``kill-*`` or ``hang-*`` in a folder is found and taken away."""

    def __init__(self, folder):
        super().__init__()
        self.folder, self.n_draws = str(folder), 0

    def draw(self, rng):
        self.n_draws += 1
        if self.n_draws % STEPS == 0:
            for fuse in sorted(Path(self.folder).glob("*-*")):
                try:
                    fuse.unlink()
                except FileNotFoundError:  # another worker was faster
                    continue
                dead = fuse.name.startswith("kill")
                (Path(self.folder) / "pids").open("a").write(f"{os.getpid()}\n")
                os.kill(os.getpid(), signal.SIGKILL if dead else signal.SIGSTOP)
        return int(rng.integers(self.n_samples))

    def memory(self):
        return {}

    def __repr__(self):
        return "Failing()"
