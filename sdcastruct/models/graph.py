"""Graphs of any shape: declare cliques and their attributes, the library finds a junction tree.

A `Clique` declares a kind of clique: how many states its nodes have, how many attributes it has,
which entries of its table share a weight. An input names the nodes of its cliques of each kind and
gives their attributes. The weights are one table per kind, laid end to end: (F, width), a row per
attribute, a column per entry of the clique's table (or per group of tied entries).

Cliques without attributes have one constant attribute, and all of a kind in a sample share one slot
of scores; cliques with attributes have a slot each. The marginals are, in this order: the table of
every declared clique, the tables of tied cliques summed over tied entries, and those cliques and
separators of the junction tree that are not among the first. Counting numbers: +1 on cliques of the
junction tree, -1 on a separator for each of its edges, 0 on tables that are neither.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import sparse

from sdcastruct.inference.junction_tree import (
    JunctionTreeEngine,
    Schedule,
    strides,
    table_size,
)
from sdcastruct.inference.triangulation import (
    check_order,
    junction_tree,
    maximal_cliques,
    min_fill,
)
from sdcastruct.models.base import Model
from sdcastruct.models.checks import (
    as_array,
    check_count,
    check_labels,
    check_nodes,
    check_rows,
    check_samples,
)
from sdcastruct.models.forest import pointers, positions
from sdcastruct.problem import Attributes, Problem, Regions, Template, Truth


class Clique:
    """A kind of clique: its table of scores and the weights behind it.

    Parameters
    ----------
    n_states : int or tuple of int
        Number of states of each node of the clique; an int declares a clique of one node.
    n_features : int, optional
        Number of attributes F. By default a clique has one constant attribute.
    tied : "symmetric" or int array of shape n_states, optional
        Entries of the table with equal numbers, from 0 on, share one weight per attribute.
        "symmetric" ties entries that are equal up to the order of the nodes.

    Examples
    --------
    Neighbours that agree or not, whatever their labels (a Potts model):

    >>> import numpy as np
    >>> from sdcastruct.models import Clique
    >>> Clique((3, 3), tied=np.eye(3, dtype=int)).width
    2
    """

    def __init__(self, n_states, n_features=None, tied=None):
        states = tuple(n_states) if np.ndim(n_states) else (n_states,)
        if not states:
            raise ValueError(f"n_states={n_states!r}: expected at least one node")
        self.n_states = tuple(check_count("n_states", k, 1) for k in states)
        if n_features is not None:
            n_features = check_count("n_features", n_features, 0)
        self.n_features = n_features
        self.tied = _check_tied(tied, self.n_states)

    def __repr__(self):
        tied = "" if self.tied is None else f", tied to {self.width} weights"
        return f"Clique({self.n_states}, n_features={self.n_features}{tied})"

    @property
    def dim(self):
        """Number of weights."""
        return self.width * (1 if self.n_features is None else self.n_features)

    @property
    def width(self):
        """Number of weights per attribute."""
        return int(np.prod(self.n_states)) if self.tied is None else int(self.tied.max()) + 1


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


class GraphModel(Model):
    """Any undirected graphs or sets of cliques; nodes may have different numbers of states.

    An input is a mapping from the kinds of cliques to their nodes, an int array of shape (m, order)
    with nodes counted from 0, or to a pair (nodes, features) where the kind has attributes;
    features is an array or CSR matrix of shape (m, n_features). Every node is in some clique.
    Override `cliques_of` to take inputs of any other form.

    Parameters
    ----------
    cliques : dict
        A `Clique` for every kind, by name.
    max_table_bytes : int, default 2**30
        Largest size of the clique tables of one sample together.
    elimination_order : callable, default min_fill
        ``elimination_order(n_nodes, cliques)`` returns the order in which the nodes of a graph are
        eliminated; cliques is a list of node arrays.

    Examples
    --------
    A triangle of nodes with 2, 2 and 3 states:

    >>> from sdcastruct.models import Clique, GraphModel
    >>> model = GraphModel({"pair": Clique((2, 2)), "mixed": Clique((2, 3))})
    >>> x = {"pair": [[0, 1]], "mixed": [[0, 2], [1, 2]]}
    >>> model.junction_tree(x).cliques
    [(0, 1, 2)]
    >>> model.bind([x], [[0, 1, 2]]).dim
    10
    """

    def __init__(self, cliques, max_table_bytes=2**30, elimination_order=min_fill):
        if not isinstance(cliques, dict) or not cliques:
            raise TypeError(f"cliques={cliques!r}: expected a dict of Clique, at least one")
        for name, clique in cliques.items():
            if not isinstance(clique, Clique):
                raise TypeError(f"cliques[{name!r}]={clique!r}: expected a Clique")
        if not callable(elimination_order):
            raise TypeError(f"elimination_order={elimination_order!r}: expected a callable")
        self.cliques = dict(cliques)
        self.max_table_bytes = check_count("max_table_bytes", max_table_bytes, 8)
        if self.max_table_bytes > 2**34:
            raise ValueError(f"max_table_bytes={max_table_bytes}: expected at most 2**34")
        self.elimination_order = elimination_order

    @property
    def dim(self):
        """Number of weights."""
        return sum(kind.dim for kind in self.cliques.values())

    def cliques_of(self, x):
        """Return the cliques of an input, a mapping as described above; by default x itself."""
        return x

    def bind(self, X, Y=None):
        """Check samples and pack them into a `Problem`; samples with the same graph share work.

        Parameters
        ----------
        X : list of inputs
        Y : list of int arrays, optional
            One label per node. Without Y the problem serves for prediction only.
        """
        check_samples(X)
        declared = [self._declared(i, x) for i, x in enumerate(X)]
        layouts, which = self._layouts(declared)
        labels = None if Y is None else _check_labels(Y, [layouts[k].states for k in which])
        return Problem(
            self._attributes(declared, layouts, which),
            _regions(layouts, which),
            JunctionTreeEngine([layout.schedule() for layout in layouts], which),
            None if Y is None else _truth(layouts, which, labels),
        )

    def states(self, x):
        """Return the number of states of each node of an input."""
        return self._states(0, _nodes(self._declared(0, x)))

    def junction_tree(self, x):
        """Return the `JunctionTree` of an input, however wide it is."""
        nodes = _nodes(self._declared(0, x))
        return self._junction_tree(nodes, self._states(0, nodes))

    def split_marginals(self, x, mu):
        """Return the marginals of the cliques of each kind, {kind: array (m, *n_states)}."""
        return self._split(self._layout(0, _nodes(self._declared(0, x))), mu)

    def marginals(self, X, w):
        """Return the marginals of p(y | x; w) of every input, as `split_marginals` shapes them."""
        problem, w = self.bind(X), self._check_weights(w)
        layouts, which = self._layouts([self._declared(i, x) for i, x in enumerate(X)])
        return [
            self._split(layouts[k], problem.infer(i, problem.score(i, w))[0])
            for i, k in enumerate(which)
        ]

    def _split(self, layout, mu):
        tables = {}
        for name, kind in self.cliques.items():
            size = int(np.prod(kind.n_states))
            offsets = np.array([layout.offset[v] for v in layout.nodes[name]], np.int64)
            entries = offsets[:, None] + np.arange(size)
            tables[name] = mu[entries].reshape(-1, *kind.n_states)
        return tables

    def split_weights(self, w):
        """Return the weights of each kind of clique, {kind: array (F, width)}."""
        sizes = [kind.dim for kind in self.cliques.values()]
        tables = np.split(self._check_weights(w), np.cumsum(sizes)[:-1])
        return {
            name: table.reshape(-1, kind.width)
            for (name, kind), table in zip(self.cliques.items(), tables, strict=True)
        }

    def _declared(self, i, x):
        """Return (nodes, features) of every kind of clique of an input; no features is None."""
        try:
            x = self.cliques_of(x)
        except TypeError as error:
            raise TypeError(f"X[{i}]: {error}") from error
        except ValueError as error:
            raise ValueError(f"X[{i}]: {error}") from error
        if not hasattr(x, "items"):
            raise TypeError(
                f"X[{i}] is {type(x).__name__}: expected a mapping with cliques "
                f"{list(self.cliques)}"
            )
        for name in set(x) - set(self.cliques):
            raise ValueError(f"X[{i}] has cliques {name!r}: expected {list(self.cliques)}")
        declared = {}
        for name, kind in self.cliques.items():
            nodes, features = x.get(name, ()), None
            if kind.n_features is not None:
                if not isinstance(nodes, tuple) or len(nodes) not in (0, 2):
                    raise TypeError(f"X[{i}][{name!r}]: expected a tuple (nodes, features)")
                nodes, features = nodes or ((), np.empty((0, kind.n_features)))
            nodes = check_nodes(f"X[{i}][{name!r}]", nodes, len(kind.n_states))
            declared[name] = nodes, features
        return declared

    def _states(self, i, nodes):
        """Return the number of states of each node, as all cliques agree on it."""
        known = np.unique(np.concatenate([v.ravel() for v in nodes.values()]))
        if known.size == 0:
            raise ValueError(f"X[{i}] has no cliques: expected at least one")
        for v in np.flatnonzero(known != np.arange(known.size)):
            raise ValueError(
                f"X[{i}] has node {known[-1]} but node {v} in no clique: expected every node in one"
            )
        states = np.zeros(known.size, np.int64)
        for name, kind in self.cliques.items():
            for axis, k in enumerate(kind.n_states):
                v = nodes[name][:, axis]
                for clash in np.flatnonzero((states[v] != 0) & (states[v] != k)):
                    raise ValueError(
                        f"X[{i}][{name!r}][{clash}] gives node {v[clash]} {k} states, another "
                        f"clique gives it {states[v[clash]]}"
                    )
                states[v] = k
        return states

    def _junction_tree(self, nodes, states):
        cliques = [clique for kind in nodes.values() for clique in kind.tolist()]
        order = check_order(self.elimination_order(states.size, cliques), states.size)
        found = maximal_cliques(states.size, cliques, order)
        upward, parent = junction_tree(found)
        position = {c: k for k, c in enumerate(upward)}
        parents = [-1 if parent[c] < 0 else position[parent[c]] for c in upward]
        ordered = [found[c] for c in upward]
        separators = [
            tuple(v for v in clique if p >= 0 and v in ordered[p])
            for clique, p in zip(ordered, parents, strict=True)
        ]
        return JunctionTree(order, ordered, parents, separators, states)

    def _layout(self, i, nodes):
        tree = self._junction_tree(nodes, self._states(i, nodes))
        if tree.table_bytes > self.max_table_bytes:
            raise ValueError(
                f"X[{i}] has a junction tree of width {tree.width}: its largest table takes "
                f"{tree.largest_table_bytes} bytes, all of them {tree.table_bytes}, but "
                f"max_table_bytes={self.max_table_bytes}"
            )
        return _Layout(self.cliques, nodes, tree)

    def _layouts(self, declared):
        """Return the layouts of all different graphs, and which of them each sample has."""
        layouts, known, which = [], {}, np.empty(len(declared), np.int64)
        for i, sample in enumerate(declared):
            nodes = _nodes(sample)
            key = _key(nodes)
            if key not in known:
                known[key] = len(layouts)
                layouts.append(self._layout(i, nodes))
            which[i] = known[key]
        return layouts, which

    def _attributes(self, declared, layouts, which):
        templates, weight_offset = [], 0
        for name, kind in self.cliques.items():
            n_cliques = np.array([len(sample[name][0]) for sample in declared], np.int64)
            first = np.array([layouts[k].first_slot[name] for k in which], np.int64)
            if kind.n_features is None:
                counts = np.minimum(n_cliques, 1)
                rows = sparse.csr_matrix(np.ones((counts.sum(), 1)))
            else:
                counts = n_cliques
                rows, found = check_rows(
                    [sample[name][1] for sample in declared],
                    kind.n_features,
                    f"X[{{}}][{name!r}][1]",
                    row="clique",
                    least=0,
                )
                for i in np.flatnonzero(found != n_cliques):
                    raise ValueError(
                        f"X[{i}][{name!r}] has {found[i]} rows of features but {n_cliques[i]} "
                        "cliques"
                    )
            offset = np.repeat(first, counts) + positions(counts) * kind.width
            templates.append(Template(rows, pointers(counts), offset, weight_offset, kind.width))
            weight_offset += rows.shape[1] * kind.width
        return Attributes(pointers([layouts[k].n_slots for k in which]), templates)


class PairwiseModel(GraphModel):
    """Nodes with the same states and edges between any of them; loops are welcome.

    An input is a tuple ``(nodes, edges)``, or ``(nodes, edges, edge_features)`` with
    ``n_edge_features``, as for `TreeModel`. The weights are (A, K) for the nodes, then (F, K * K)
    for the edges, or (F, number of weights) if they are tied.

    Parameters
    ----------
    n_states, n_features : int
        Number of labels K of a node and of its attributes A.
    n_edge_features : int, optional
        Number of attributes F of an edge. By default an edge has one constant attribute.
    tied : "symmetric" or int array of shape (K, K), optional
        See `Clique`.
    max_table_bytes, elimination_order
        See `GraphModel`.

    Examples
    --------
    A ring of four nodes:

    >>> import numpy as np
    >>> from sdcastruct.models import PairwiseModel
    >>> model = PairwiseModel(n_states=3, n_features=4, tied="symmetric")
    >>> x = (np.eye(4), [[0, 1], [1, 2], [2, 3], [3, 0]])
    >>> model.junction_tree(x).width, model.dim
    (2, 18)
    """

    def __init__(
        self,
        n_states,
        n_features,
        n_edge_features=None,
        tied=None,
        max_table_bytes=2**30,
        elimination_order=min_fill,
    ):
        cliques = {
            "nodes": Clique(n_states, n_features),
            "edges": Clique((n_states, n_states), n_edge_features, tied),
        }
        super().__init__(cliques, max_table_bytes, elimination_order)

    def cliques_of(self, x):
        """Return the cliques of a tuple (nodes, edges) or (nodes, edges, edge_features)."""
        featureless = self.cliques["edges"].n_features is None
        names = ("nodes", "edges") if featureless else ("nodes", "edges", "edge_features")
        if not isinstance(x, tuple | list) or len(x) != len(names):
            found = f"{len(x)} items" if isinstance(x, tuple | list) else type(x).__name__
            raise TypeError(f"found {found}, expected a tuple ({', '.join(names)})")
        rows = x[0]
        if not sparse.issparse(rows):
            rows = as_array("nodes", rows, "expected rows of equal length")
        n_nodes = rows.shape[0] if rows.ndim == 2 else None
        edges = check_nodes("edges", x[1], 2, n_nodes)
        nodes = np.arange(n_nodes or 0)[:, None]
        return {"nodes": (nodes, rows), "edges": edges if featureless else (edges, x[2])}

    def _split(self, layout, mu):
        """Return node marginals of shape (T, K) and edge marginals of shape (E, K, K)."""
        tables = super()._split(layout, mu)
        return tables["nodes"], tables["edges"]


class _Layout:
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

    def schedule(self):
        """Return the compiled steps of inference."""
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


def _nodes(declared):
    return {name: nodes for name, (nodes, _) in declared.items()}


def _key(nodes):
    """Return bytes that are equal for equal graphs."""
    return b"|".join(np.int64(len(v)).tobytes() + v.tobytes() for v in nodes.values())


def _check_labels(Y, states):
    n_nodes = np.array([s.size for s in states], np.int64)
    labels = check_labels(Y, n_nodes, np.concatenate(states))
    return np.split(labels, np.cumsum(n_nodes)[:-1])


def _regions(layouts, which):
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


def _truth(layouts, which, labels):
    region, slot = [None] * len(which), [None] * len(which)
    for k, layout in enumerate(layouts):
        members = np.flatnonzero(which == k)
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


def _check_tied(tied, n_states):
    """Return the column of each entry of a table as an int64 array, or None."""
    if tied is None:
        return None
    if isinstance(tied, str):
        if tied != "symmetric":
            raise ValueError(f"tied={tied!r}: expected 'symmetric', an int array or None")
        if len(set(n_states)) > 1:
            raise ValueError(f"tied='symmetric': expected nodes with equal states, got {n_states}")
        ordered = np.sort(np.indices(n_states).reshape(len(n_states), -1), axis=0)
        _, columns = np.unique(ordered, axis=1, return_inverse=True)
        return columns.reshape(n_states).astype(np.int64)
    columns = as_array("tied", tied, f"expected {n_states} integers")
    if columns.shape != n_states or columns.dtype.kind not in "iu":
        raise ValueError(
            f"tied has shape {columns.shape} of {columns.dtype}, expected {n_states} integers"
        )
    found = np.unique(columns)
    if not np.array_equal(found, np.arange(found.size)):
        raise ValueError(
            f"tied has the numbers {found.tolist()}: expected 0, 1, 2, ... without a gap"
        )
    return columns.astype(np.int64)
