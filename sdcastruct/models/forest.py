"""Packing of samples whose graphs are forests of nodes with the same K states.

Scores of a sample with T nodes: T K node scores, then tables of K^2 edge scores, each shared by any
number of edges. Marginals: T node tables, then one table per edge. Counting numbers: +1 on edges,
1 - degree on nodes, so that a node without edges has +1.
"""

from functools import cached_property

import numpy as np

from sdcastruct.inference.tree import TreeEngine
from sdcastruct.problem import Regions, Truth


class Forest:
    """The graphs of n samples.

    Parameters
    ----------
    n_states : int
    n_nodes, n_edges, n_tables : int64 arrays of shape (n,)
        Numbers of nodes, edges and tables of edge scores of each sample.
    edges : int64 array of shape (sum of n_edges, 2)
        The nodes of each edge, counted within its sample.
    tables : int64 array of shape (sum of n_edges,)
        Which of its sample's tables each edge has.
    """

    def __init__(self, n_states, n_nodes, n_edges, n_tables, edges, tables):
        self.n_states = n_states
        self.n_nodes, self.n_edges, self.n_tables = n_nodes, n_edges, n_tables
        self.edges, self.tables = edges, tables
        self.node_ptr, self.edge_ptr = pointers(n_nodes), pointers(n_edges)

    @classmethod
    def chains(cls, n_states, lengths):
        """Return chains whose edges share one table."""
        n_edges = lengths - 1
        first = positions(n_edges)
        edges = np.stack([first, first + 1], axis=1)
        return cls(n_states, lengths, n_edges, np.minimum(n_edges, 1), edges, np.zeros_like(first))

    @cached_property
    def slot_ptr(self):
        """Offsets of the scores theta_i in their concatenation."""
        K = self.n_states
        return pointers(self.n_nodes * K + self.n_tables * K * K)

    @property
    def node_offset(self):
        """Where the scores of each node begin in those of its sample."""
        return positions(self.n_nodes) * self.n_states

    @property
    def table_offset(self):
        """Where each table of edge scores begins in the scores of its sample."""
        K = self.n_states
        return np.repeat(self.n_nodes, self.n_tables) * K + positions(self.n_tables) * K * K

    def engine(self, allowed=None, allowed_first=None):
        """Return the engine of these graphs; see `TreeEngine` for what may be forbidden."""
        return TreeEngine(
            self.n_states,
            self.node_ptr,
            self.edge_ptr,
            self.edges,
            self.tables,
            self.n_tables,
            allowed,
            allowed_first,
        )

    def regions(self):
        """Return counting numbers, and which tables of marginals add up in which slot."""
        K = self.n_states
        return Regions(
            pointers(self.n_nodes * K + self.n_edges * K * K), *self._runs(), *self._segments()
        )

    def truth(self, labels):
        """Return where the labels, all samples end to end, stand in marginals and scores."""
        K = self.n_states
        node = self.node_offset + labels
        owner = owners(self.n_edges)
        ends = self.edges + self.node_ptr[owner][:, None]
        pair = self.n_nodes[owner] * K + labels[ends[:, 0]] * K + labels[ends[:, 1]]
        order = np.argsort(np.concatenate([owners(self.n_nodes), owner]), kind="stable")
        ptr = pointers(self.n_nodes + self.n_edges)
        region = np.concatenate([node, pair + positions(self.n_edges) * K * K])[order]
        slot = np.concatenate([node, pair + self.tables * K * K])[order]
        return Truth(ptr, region, ptr, slot)

    def _runs(self):
        """Return run_ptr, run_length and run_counting of `Regions`: nodes, then edges."""
        K, n = self.n_states, self.n_nodes.size
        ends = self.edges + self.node_ptr[owners(self.n_edges)][:, None]
        counting = 1.0 - np.bincount(ends.ravel(), minlength=self.node_ptr[-1])
        first = np.diff(counting, prepend=np.nan) != 0
        first[self.node_ptr[:-1]] = True
        start = np.flatnonzero(first)
        node_runs = np.diff(np.searchsorted(start, self.node_ptr))
        edge_run = self.n_edges > 0
        run_ptr = pointers(node_runs + edge_run)
        length, value = np.empty(run_ptr[-1], np.int64), np.ones(run_ptr[-1])
        at = np.ones(run_ptr[-1], bool)
        at[run_ptr[1:][edge_run] - 1] = False
        length[at] = np.diff(np.append(start, self.node_ptr[n])) * K
        value[at] = counting[start]
        length[~at] = self.n_edges[edge_run] * K * K
        return run_ptr, length, value

    def _segments(self):
        """Return segment_ptr and segments of `Regions`: nodes, then edges in runs of one table."""
        K, n = self.n_states, self.n_nodes.size
        nodes = np.stack([np.zeros(n), np.zeros(n), self.n_nodes * K, np.ones(n)], axis=1).astype(
            np.int64
        )
        owner, position = owners(self.n_edges), positions(self.n_edges)
        starts = np.diff(self.tables, prepend=-1) != 0
        starts[self.edge_ptr[:-1][self.n_edges > 0]] = True
        start = np.flatnonzero(starts)
        repeat = np.diff(np.append(start, owner.size))
        first = self.n_nodes[owner[start]] * K
        edges = np.stack(
            [
                first + position[start] * K * K,
                first + self.tables[start] * K * K,
                np.full(start.size, K * K),
                repeat,
            ],
            axis=1,
        )
        order = np.argsort(np.concatenate([np.arange(n), owner[start]]), kind="stable")
        counts = 1 + np.bincount(owner[start], minlength=n)
        return pointers(counts), np.concatenate([nodes, edges])[order]


def node_losses(n_states, labels):
    """Return the Hamming loss of labels as scores of nodes, where the scores of a forest begin."""
    return (np.arange(n_states) != np.reshape(labels, (-1, 1))).ravel()


def pointers(counts):
    """Return where each of consecutive groups of these sizes begins, and where the last ends."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])


def owners(counts):
    """Return the group that each of its members belongs to, members end to end."""
    return np.repeat(np.arange(counts.size), counts)


def positions(counts):
    """Return 0, 1, ..., count - 1 for every count, end to end."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
