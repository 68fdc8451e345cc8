"""From a graph to a junction tree: elimination orders, maximal cliques, separators.

Eliminating the nodes of a graph one by one, each time joining all neighbours of the node that goes,
adds the edges that make the graph chordal. A node and its neighbours at that moment are a clique.
What is left of a clique when its own nodes have gone is its separator; it lies in the clique of the
next node to go. So the maximal cliques form a junction tree: those that contain a node are
connected (running intersection), and no spanning tree of the cliques has larger separators. Sets of
nodes are integers, bit v for node v.
"""

import heapq
from collections import Counter

import numpy as np


def min_fill(n_nodes, cliques):
    """Return an elimination order: next comes a node whose neighbours lack the fewest edges.

    Parameters
    ----------
    n_nodes : int
    cliques : iterable of node sequences
        Nodes that are joined to each other.

    Returns
    -------
    list of int
    """
    graph = _Graph(n_nodes, cliques)
    lack = [graph.missing(v) for v in range(n_nodes)]
    heap = [(lack[v], v) for v in range(n_nodes)]
    heapq.heapify(heap)
    order, gone = [], [False] * n_nodes

    def change(v, amount):
        if amount:
            lack[v] += amount
            heapq.heappush(heap, (lack[v], v))

    while heap:
        known, v = heapq.heappop(heap)
        if gone[v] or known != lack[v]:
            continue  # an entry that was overtaken
        near = graph.neighbours[v]
        for a, b in graph.missing_pairs(v):
            both = graph.neighbours[a] & graph.neighbours[b]
            for c in _bits(both):
                change(c, -1)
            change(a, (graph.neighbours[a] & ~both).bit_count())
            change(b, (graph.neighbours[b] & ~both).bit_count())
            graph.join(a, b)
        for u in _bits(near):
            change(u, -(graph.neighbours[u] & ~near & ~(1 << v)).bit_count())
        graph.remove(v)
        order.append(v)
        gone[v] = True
    return order


def junction_tree(n_nodes, cliques, order):
    """Triangulate a graph along an elimination order and join its maximal cliques in a tree.

    Parameters
    ----------
    n_nodes : int
    cliques : iterable of node sequences
        Nodes that are joined to each other.
    order : list of int
        All nodes.

    Returns
    -------
    cliques : list of tuples
        Maximal cliques, every one before its parent; nodes in the order of elimination.
    parent : list of int
        The parent of each clique, -1 at a root. A clique shares with its parent all but those of
        its nodes that are in no later clique.
    """
    found = _elimination_cliques(n_nodes, cliques, order)
    holder = {}  # the first node of the maximal clique that a node's own clique lies in
    for v in order:
        holder.setdefault(v, v)
        if len(found[v]) > 1 and len(found[found[v][1]]) == len(found[v]) - 1:
            holder.setdefault(found[v][1], holder[v])
    first = [v for v in order if holder[v] == v]
    position = {v: c for c, v in enumerate(first)}
    parent = []
    for v in first:
        u = v
        while len(found[u]) > 1 and holder[found[u][1]] == v:
            u = found[u][1]
        parent.append(position[holder[found[u][1]]] if len(found[u]) > 1 else -1)
    upward = _children_first(parent)
    place = {c: k for k, c in enumerate(upward)}
    return [found[first[c]] for c in upward], [place.get(parent[c], -1) for c in upward]


def _children_first(parent):
    """Return an order of the nodes of a forest in which every node comes before its parent."""
    children = [[] for _ in parent]
    roots = []
    for c, p in enumerate(parent):
        (roots if p < 0 else children[p]).append(c)
    downward = roots
    for c in downward:
        downward.extend(children[c])
    return downward[::-1]


def _elimination_cliques(n_nodes, cliques, order):
    """Return each node with its neighbours at the moment when it is eliminated, {node: tuple}."""
    graph = _Graph(n_nodes, cliques)
    rank = {v: k for k, v in enumerate(order)}
    found = {}
    for v in order:
        found[v] = (v, *sorted(_bits(graph.neighbours[v]), key=rank.get))
        for a, b in graph.missing_pairs(v):
            graph.join(a, b)
        graph.remove(v)
    return found


def check_running_intersection(cliques, separators):
    """Check that the cliques with each node are connected; separators are those of a forest."""
    count = Counter(v for clique in cliques for v in clique)
    count.subtract(v for separator in separators for v in separator)
    for v, surplus in count.items():
        if surplus != 1:
            raise ValueError(f"the cliques with node {v} are not connected: no junction tree")


def check_order(order, n_nodes):
    """Check that an elimination order names every node once; return it as a list."""
    found = np.asarray(order)
    if found.shape != (n_nodes,) or not np.array_equal(np.sort(found), np.arange(n_nodes)):
        raise ValueError(
            f"elimination_order returned {order!r}: expected each node from 0 to {n_nodes - 1} once"
        )
    return found.tolist()


class _Graph:
    """Neighbours of every node as sets of bits."""

    def __init__(self, n_nodes, cliques):
        self.neighbours = [0] * n_nodes
        for clique in cliques:
            joined = 0
            for v in clique:
                joined |= 1 << int(v)
            for v in clique:
                self.neighbours[int(v)] |= joined & ~(1 << int(v))

    def missing_pairs(self, v):
        """Yield the pairs of neighbours of v that are not joined."""
        for a in _bits(self.neighbours[v]):
            for b in _bits(self.neighbours[v] & ~self.neighbours[a] & ~((2 << a) - 1)):
                yield a, b

    def missing(self, v):
        return sum(
            (self.neighbours[v] & ~self.neighbours[a] & ~((2 << a) - 1)).bit_count()
            for a in _bits(self.neighbours[v])
        )

    def join(self, a, b):
        self.neighbours[a] |= 1 << b
        self.neighbours[b] |= 1 << a

    def remove(self, v):
        for u in _bits(self.neighbours[v]):
            self.neighbours[u] &= ~(1 << v)


def _bits(nodes):
    """Yield the nodes of a set."""
    while nodes:
        lowest = nodes & -nodes
        yield lowest.bit_length() - 1
        nodes ^= lowest
