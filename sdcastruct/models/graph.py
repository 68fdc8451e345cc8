"""Graphs of any shape: declare cliques and their attributes, the library finds a junction tree.

A `Clique` declares a kind of clique: how many states its nodes have, how many attributes it has,
which entries of its table share a weight. An input names the nodes of its cliques of each kind and
gives their attributes. The weights are one table per kind, laid end to end: (F, width), a row per
attribute, a column per entry of the clique's table (or per group of tied entries).

Cliques without attributes have one constant attribute, and all of a kind in a sample share one slot
of scores; cliques with attributes have a slot each. See `layout` for the marginals.
"""

import numpy as np
from scipy import sparse

from sdcastruct.inference.junction_tree import JunctionTreeEngine
from sdcastruct.inference.triangulation import min_fill
from sdcastruct.models.base import Model
from sdcastruct.models.checks import (
    check_count,
    check_labels,
    check_nodes,
    check_rows,
    check_samples,
)
from sdcastruct.models.clique import Clique
from sdcastruct.models.forest import pointers, positions
from sdcastruct.models.layout import JunctionTree, Layout, pack_regions, pack_truth
from sdcastruct.problem import Attributes, Problem, Template


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
        return self._bind(X, Y)[0]

    def _bind(self, X, Y=None):
        """Return the problem, the layouts of all different graphs, and which each sample has."""
        check_samples(X)
        declared = [self._declared(i, x) for i, x in enumerate(X)]
        layouts, which = self._layouts(declared)
        labels = None if Y is None else _check_labels(Y, [layouts[k].states for k in which])
        maps = {}
        problem = Problem(
            self._attributes(declared, layouts, which),
            pack_regions(layouts, which),
            JunctionTreeEngine([layout.schedule(maps) for layout in layouts], which),
            None if Y is None else pack_truth(layouts, which, labels),
        )
        return problem, layouts, which

    def _names(self, kind):
        """Return what messages call the nodes and features of cliques, n_features, and a row."""
        return f"X[{{}}][{kind!r}]", f"X[{{}}][{kind!r}][1]", "n_features", "clique"

    def __repr__(self):
        return (
            f"{type(self).__name__}({self.cliques!r}, max_table_bytes={self.max_table_bytes}, "
            f"elimination_order={_name(self.elimination_order)})"
        )

    def states(self, x):
        """Return the number of states of each node of an input."""
        return self._states(0, _nodes(self._declared(0, x)))

    def junction_tree(self, x):
        """Return the `JunctionTree` of an input, however wide it is."""
        nodes = _nodes(self._declared(0, x))
        return self._junction_tree(nodes, self._states(0, nodes))

    def split_marginals(self, x, mu):
        """Return the marginals of the cliques of each kind, ``{kind: array (m, *n_states)}``."""
        return self._split(self._layout(0, _nodes(self._declared(0, x))), mu)

    def marginals(self, X, w):
        """Return the marginals of p(y | x; w) of every input, as `split_marginals` shapes them."""
        w = self._check_weights(w)
        problem, layouts, which = self._bind(X)
        return [
            self._split(layouts[k], problem.infer(i, self._scores(problem, i, w))[0])
            for i, k in enumerate(which)
        ]

    def _split(self, layout, mu):
        tables = {}
        for name, kind in self.cliques.items():
            offsets = np.array([layout.offset[v] for v in layout.nodes[name]], np.int64)
            entries = offsets[:, None] + np.arange(kind.size)
            tables[name] = mu[entries].reshape(-1, *kind.n_states)
        return tables

    def _join_marginals(self, x, y, n_marginals):
        """Return region marginals; those of tied entries are sums of the others."""
        mu = super()._join_marginals(x, y, n_marginals)
        layout = self._layout(0, _nodes(self._declared(0, x)))
        for (name, nodes), offset in layout.tied_offset.items():
            kind, first = self.cliques[name], layout.offset[nodes]
            table = mu[first : first + kind.size]
            mu[offset : offset + kind.width] = np.bincount(kind.tied.ravel(), table)
        return mu

    def split_weights(self, w):
        """Return the weights of each kind of clique, {kind: array (F, width)}."""
        sizes = [kind.dim for kind in self.cliques.values()]
        tables = np.split(self._check_weights(w), np.cumsum(sizes)[:-1])
        return {
            name: table.reshape(-1, kind.width)
            for (name, kind), table in zip(self.cliques.items(), tables, strict=True)
        }

    def _decode_with_loss(self, X, Y, w):
        """Decode with the loss as one more kind of clique for each number of states K.

        Nodes need not have scores of their own. Here they get them: attributes 1 - onehot(y) and
        the identity as weights.
        """
        check_samples(X)
        declared = [self._declared(i, x) for i, x in enumerate(X)]
        states = [self._states(i, _nodes(sample)) for i, sample in enumerate(declared)]
        sizes = np.unique(np.concatenate(states)).tolist()
        losses = {("loss", K): Clique(K, n_features=K) for K in sizes}
        inputs = []
        for sample, s, y in zip(declared, states, _check_labels(Y, states), strict=True):
            cliques = {
                name: nodes if features is None else (nodes, features)
                for name, (nodes, features) in sample.items()
            }
            for K in sizes:
                v = np.flatnonzero(s == K)
                cliques["loss", K] = v[:, None], 1 - np.eye(K)[y[v]]
            inputs.append(cliques)
        model = GraphModel(self.cliques | losses, self.max_table_bytes, self.elimination_order)
        return model.decode(inputs, np.concatenate([w, *(np.eye(K).ravel() for K in sizes)]))

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
            called = self._names(name)[0].format(i)
            nodes = check_nodes(called, nodes, len(kind.n_states))
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
        return JunctionTree.of(cliques, states, self.elimination_order)

    def _layout(self, i, nodes):
        tree = self._junction_tree(nodes, self._states(i, nodes))
        if tree.table_bytes > self.max_table_bytes:
            raise ValueError(
                f"X[{i}] has a junction tree of width {tree.width}: its largest table takes "
                f"{tree.largest_table_bytes} bytes, all of them {tree.table_bytes}, but "
                f"max_table_bytes={self.max_table_bytes}"
            )
        return Layout(self.cliques, nodes, tree)

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
                _, features, columns, row = self._names(name)
                rows, found = check_rows(
                    [sample[name][1] for sample in declared],
                    kind.n_features,
                    features,
                    columns,
                    row,
                    least=0,
                )
                for i in np.flatnonzero(found != n_cliques):
                    raise ValueError(
                        f"{features.format(i)} has {found[i]} rows of features but X[{i}] has "
                        f"{n_cliques[i]} {row}s"
                    )
            offset = np.repeat(first, counts) + positions(counts) * kind.width
            templates.append(Template(rows, pointers(counts), offset, weight_offset, kind.width))
            weight_offset += rows.shape[1] * kind.width
        return Attributes(pointers([layouts[k].n_slots for k in which]), templates)


def _nodes(declared):
    return {name: nodes for name, (nodes, _) in declared.items()}


def _key(nodes):
    """Return bytes that are equal for equal graphs."""
    return b"|".join(np.int64(len(v)).tobytes() + v.tobytes() for v in nodes.values())


def _name(function):
    return getattr(function, "__name__", repr(function))


def _check_labels(Y, states):
    n_nodes = np.array([s.size for s in states], np.int64)
    labels = check_labels(Y, n_nodes, np.concatenate(states))
    return np.split(labels, np.cumsum(n_nodes)[:-1])
