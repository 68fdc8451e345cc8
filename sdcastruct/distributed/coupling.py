"""How strongly the parts of a problem count on each other: sigma' of CoCoA+.

In a round every worker moves its sums u_k by du_k, knowing nothing of the others. With

    r = ||sum_k du_k||^2 / sum_k ||du_k||^2,    0 <= r <= K

the dual cannot drop if sigma' >= r, as every worker has ascended on a model of the dual that
charges it sigma' ||du_k||^2 (Ma et al. 2015). So sigma' = K is always safe, and often far too
careful: where workers change different weights, r is near 1. The next sigma' follows the r that was
seen, up at once and down slowly. r may rise from one round to the next, so the dual is looked at
after every round: if it drops, the next round is a safe one, and from then on sigma' stays above
twice its old floor. After log2(K) drops it is K for good, so that drops cannot go on for ever.

A round that lowered the dual is not undone. Its point is as feasible as any other: it costs time,
while a second copy of the dual variables would cost memory in every run.
"""

MARGIN = 1.2
DECAY = 0.9
SLACK = 1e-3  # of the gap: what the entropies that steps keep may be wrong by
ROUNDING = 1e-12


class Coupling:
    """The sigma' of the next round.

    Attributes
    ----------
    value, floor : float
        sigma', and what it must not fall below.
    n_drops : int
        Rounds that have lowered the dual.

    Parameters
    ----------
    n_parts : int
        Number of workers that move at once, K.
    start : float, optional
        sigma' of the first round; K if not given.
    """

    def __init__(self, n_parts, start=None):
        self.n_parts = float(n_parts)
        self.value = self.n_parts if start is None else float(start)
        self.floor = min(self.value, 1.0)
        self.n_drops = 0

    def observe(self, ratio, before, after, gap):
        """Learn the r of a round, the dual before and after it, and the estimate of the gap."""
        size = 1.0 + abs(before)
        if after < before - SLACK * min(gap, size) - ROUNDING * size:
            self.n_drops += 1
            self.floor = min(max(2.0 * self.floor, 1.0), self.n_parts)
            self.value = self.n_parts
        else:
            self.value = max(MARGIN * ratio, DECAY * self.value, self.floor)
            self.value = min(self.value, max(self.n_parts, self.floor))

    def memory(self):
        """Return everything in terms of JSON, for a checkpoint."""
        return {"value": self.value, "floor": self.floor, "n_drops": self.n_drops}

    def remember(self, memory):
        """Take what `memory` returned."""
        self.value, self.floor = memory["value"], memory["floor"]
        self.n_drops = memory["n_drops"]
