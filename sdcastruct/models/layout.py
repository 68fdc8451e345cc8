"""Where everything lies in a sample of a `GraphModel`: slots, regions, junction tree.

The marginals are, in this order: the table of every declared clique, the tables of tied cliques
summed over tied entries, and those cliques and separators of the junction tree that are not among
the first. Counting numbers: +1 on cliques of the junction tree, -1 on a separator for each of its
edges, 0 on tables that are neither.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import sparse

from sdcastruct.inference.junction_tree import Schedule, strides, table_size
from sdcastruct.inference.triangulation import (
    check_order,
    check_running_intersection,
    junction_tree,
)
from sdcastruct.models.forest import pointers
from sdcastruct.problem import Regions, Truth


class JunctionTree(NamedTuple):
    """The junction tree of an input.

    Attributes
    ----------
    elimination_order : list of int
    cliques : list of tuples
        Nodes of every clique, each clique before its parent.
    parent : list of int
        The parent of each clique, -1 at a root.
    separators : list of tuples
        Nodes that each clique shares with its parent.
    states : int array of shape (n_nodes,)
    """

    elimination_order: list
    cliques: list
    parent: list
    separators: list
    states: np.ndarray

    @classmethod
    def of(cls, cliques, states, elimination_order):
        """Return the junction tree of a graph given by cliques, along an elimination order."""
        order = check_order(elimination_order(states.size, cliques), states.size)
        found, parent = junction_tree(states.size, cliques, order)
        scopes = [set(clique) for clique in found]
        separators = [
            tuple(v for v in clique if p >= 0 and v in scopes[p])
            for clique, p in zip(found, parent, strict=True)
        ]
        check_running_intersection(found, separators)
        return cls(order, found, parent, separators, states)

    @property
    def width(self):
        """Nodes of the largest clique, less one; at least the treewidth of the graph."""
        return max(len(clique) for clique in self.cliques) - 1

    @property
    def largest_table_bytes(self):
        """Size of the table of the largest clique."""
        return 8 * max(table_size(self.states, clique) for clique in self.cliques)

    @property
    def table_bytes(self):
        """Size of the tables of all cliques."""
        return 8 * sum(table_size(self.states, clique) for clique in self.cliques)


class Layout:
    """Slots, regions and schedule of one graph.

    Attributes
    ----------
    states : int array of shape (n_nodes,)
    nodes : dict
        The cliques of each kind, tuples of nodes.
    offset : dict
        Where the table over a tuple of nodes begins among the marginals.
    tied_offset : dict
        Where the table of a tied clique begins, by kind and nodes.
    first_slot : dict
        Where the slots of each kind begin among the scores.
    n_slots, n_marginals : int
    """

    def __init__(self, kinds, nodes, tree):
        self.kinds, self.tree, self.states = kinds, tree, tree.states
        self.nodes = {name: [tuple(c) for c in rows.tolist()] for name, rows in nodes.items()}
        self.n_slots, self.n_marginals = 0, 0
        self.first_slot, self.offset, self.tied_offset, self.counting = {}, {}, {}, {}
        self._place_slots()
        self._place_regions()

    def schedule(self, maps):
        """Return the compiled steps of inference; `maps` are those between tables made so far."""
        cliques = [(c, self.offset[c]) for c in self.cliques]
        separators = [(s, self.offset.get(s)) for s in self.separators]
        return Schedule(
            self.states,
            cliques,
            self.tree.parent,
            separators,
            self._factors(),
            self._below(),
            self._others(),
            self._graph(),
            maps,
        )

    def _graph(self):
        """Return bytes that are equal where marginals mean the same: nodes of tables, and ties."""
        ties = [(name, v, self.kinds[name].tied.tolist()) for name, v in self.tied_offset]
        return repr((list(self.offset.items()), ties)).encode()

    def segments(self):
        """Return the segments of `Regions`: which tables of marginals add up in which slot."""
        segments = []
        for name, kind in self.kinds.items():
            stride = 0 if kind.n_features is None else kind.width
            for k, nodes in enumerate(self.nodes[name]):
                region = self.offset[nodes] if kind.tied is None else self.tied_offset[name, nodes]
                slot = self.first_slot[name] + k * stride
                last = segments[-1] if k else None
                if last and last[0] + last[3] * kind.width == region and last[1] == slot:
                    last[3] += 1
                else:
                    segments.append([region, slot, kind.width, 1])
        return np.array(segments, np.int64)

    def slot_positions(self, labels):
        """Return where labellings, shape (g, n_nodes), stand among the scores, shape (g, f)."""
        columns = []
        for name, kind in self.kinds.items():
            stride = 0 if kind.n_features is None else kind.width
            first = self.first_slot[name] + stride * np.arange(len(self.nodes[name]))
            columns.append(first + self._entries(self.nodes[name], kind.tied, labels))
        return np.concatenate(columns, axis=1)

    def region_positions(self, labels):
        """Return where labellings, shape (g, n_nodes), stand among the marginals, shape (g, r)."""
        offsets = np.array(list(self.offset.values()))
        columns = [offsets + self._entries(list(self.offset), None, labels)]
        for (name, nodes), offset in self.tied_offset.items():
            columns.append(offset + self._entries([nodes], self.kinds[name].tied, labels))
        return np.concatenate(columns, axis=1)

    def _entries(self, cliques, tied, labels):
        """Return the entries of the tables of cliques that labellings stand for."""
        owner = np.repeat(np.arange(len(cliques)), [len(c) for c in cliques])
        node = np.concatenate([np.empty(0, np.int64), *cliques])
        step = np.concatenate([np.empty(0, np.int64), *(strides(self.states, c) for c in cliques)])
        shape = (labels.shape[1], len(cliques))
        entries = labels @ sparse.csr_matrix((step, (node.astype(np.int64), owner)), shape)
        return entries if tied is None else tied.ravel()[entries]

    def _place_slots(self):
        for name, kind in self.kinds.items():
            self.first_slot[name] = self.n_slots
            count = len(self.nodes[name])
            self.n_slots += kind.width * (min(count, 1) if kind.n_features is None else count)

    def _place_regions(self):
        for cliques in self.nodes.values():
            for nodes in cliques:
                self._place(nodes)
        for name, kind in self.kinds.items():
            if kind.tied is not None:
                for nodes in self.nodes[name]:
                    self.tied_offset[name, nodes] = self.n_marginals
                    self.n_marginals += kind.width
        # Cliques and separators of the junction tree take the tables that are there already.
        known = {}
        for nodes in self.offset:
            known.setdefault(frozenset(nodes), nodes)
        self.cliques = [known.setdefault(frozenset(c), c) for c in self.tree.cliques]
        self.separators = [known.setdefault(frozenset(s), s) for s in self.tree.separators]
        for clique in self.cliques:
            self._place(clique)
            self.counting[clique] += 1.0
        for separator, parent in zip(self.separators, self.tree.parent, strict=True):
            if parent >= 0:
                self._place(separator)
                self.counting[separator] -= 1.0

    def _place(self, nodes):
        if nodes not in self.offset:
            self.offset[nodes] = self.n_marginals
            self.counting[nodes] = 0.0
            self.n_marginals += table_size(self.states, nodes)

    def runs(self):
        """Return lengths and counting numbers of the tables of marginals, as they lie in mu."""
        tables = [(self.offset[v], table_size(self.states, v), c) for v, c in self.counting.items()]
        for (name, _), offset in self.tied_offset.items():
            tables.append((offset, self.kinds[name].width, 0.0))
        _, length, counting = np.array(sorted(tables)).T
        first = np.flatnonzero(np.diff(counting, prepend=np.nan))
        return np.add.reduceat(length, first).astype(np.int64), counting[first]

    def _factors(self):
        """Return the scores that enter the cliques, see `Schedule`."""
        factors = []
        for name, kind in self.kinds.items():
            stride = 0 if kind.n_features is None else kind.width
            for k, nodes in enumerate(self.nodes[name]):
                offset = self.first_slot[name] + k * stride
                factors.append((self._holder(nodes), nodes, kind.tied, offset))
        return factors

    def _below(self):
        """Return every separator once, from the parent of the first child on the way down."""
        first = {}
        for separator, parent in zip(self.separators, self.tree.parent, strict=True):
            if parent >= 0:
                first[separator] = parent  # the last in the list is the first on the way down
        return [(parent, s, None, self.offset[s]) for s, parent in first.items()]

    def _others(self):
        """Return the tables that are neither cliques nor separators, see `Schedule`."""
        known, others = {*self.cliques, *self.separators}, []
        for nodes, offset in self.offset.items():
            if nodes not in known:
                source = self._source(nodes)
                others.append(((source, self.offset[source]), nodes, None, offset))
        for (name, nodes), offset in self.tied_offset.items():
            others.append(((nodes, self.offset[nodes]), nodes, self.kinds[name].tied, offset))
        return others

    @cached_property
    def _holders(self):
        """The cliques that contain each node, smallest table first."""
        return self._by_node(self.cliques)

    @cached_property
    def _sources(self):
        """The cliques and separators that contain each node, smallest table first."""
        return self._by_node([*self.cliques, *filter(None, self.separators)])

    def _by_node(self, tables):
        holders = {}
        for k in np.argsort([table_size(self.states, v) for v in tables], kind="stable").tolist():
            for v in tables[k]:
                holders.setdefault(v, []).append((k, tables[k]))
        return holders

    def _holder(self, nodes):
        """Return the number of the clique with the smallest table that contains these nodes."""
        return next(k for k, held in self._holders[nodes[0]] if set(nodes) <= set(held))

    def _source(self, nodes):
        """Return the smallest clique or separator that contains these nodes."""
        return next(held for _, held in self._sources[nodes[0]] if set(nodes) <= set(held))


def pack_regions(layouts, which):
    """Return the regions of all samples; `which` says the layout of each."""
    runs = [layout.runs() for layout in layouts]
    segments = [layout.segments() for layout in layouts]
    return Regions(
        pointers([layouts[k].n_marginals for k in which]),
        pointers([runs[k][0].size for k in which]),
        np.concatenate([runs[k][0] for k in which]),
        np.concatenate([runs[k][1] for k in which]),
        pointers([len(segments[k]) for k in which]),
        np.concatenate([segments[k] for k in which]),
    )


def pack_truth(layouts, which, labels):
    """Return where the labels of all samples stand in marginals and scores."""
    region, slot = [None] * len(which), [None] * len(which)
    order = np.argsort(which, kind="stable")
    groups = np.split(order, np.cumsum(np.bincount(which, minlength=len(layouts)))[:-1])
    for layout, members in zip(layouts, groups, strict=True):
        block = np.stack([labels[i] for i in members])
        for i, r, s in zip(
            members, layout.region_positions(block), layout.slot_positions(block), strict=True
        ):
            region[i], slot[i] = r, s
    return Truth(
        pointers([r.size for r in region]),
        np.concatenate(region),
        pointers([s.size for s in slot]),
        np.concatenate(slot),
    )
