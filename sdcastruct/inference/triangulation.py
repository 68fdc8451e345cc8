"""From a graph to a junction tree: elimination, maximal cliques, maximum-weight spanning tree.

Eliminating the nodes of a graph one by one, each time joining all neighbours of the node that goes,
adds the edges that make the graph chordal. A node and its neighbours at that moment are a clique;
the maximal ones, joined by a spanning tree of largest separators, are a junction tree: the cliques
that contain a node are connected (running intersection). Sets of nodes are integers, bit v for
node v.
"""

import heapq

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


def maximal_cliques(n_nodes, cliques, order):
    """Return the maximal cliques of the graph triangulated along an elimination order.

    Returns
    -------
    list of tuples
        Nodes of a clique in the order in which they are eliminated.
    """
    graph = _Graph(n_nodes, cliques)
    rank = {v: k for k, v in enumerate(order)}
    found, covered = {}, set()
    for v in order:
        later = sorted(_bits(graph.neighbours[v]), key=rank.get)
        found[v] = (v, *later)
        for a, b in graph.missing_pairs(v):
            graph.join(a, b)
        graph.remove(v)
    for clique in found.values():
        # What is left of a clique without its first node lies in that of its second node.
        if len(clique) > 1 and len(found[clique[1]]) == len(clique) - 1:
            covered.add(clique[1])
    return [found[v] for v in order if v not in covered]


def junction_tree(cliques):
    """Join cliques by a maximum-weight spanning forest; the weight is the size of the separator.

    Parameters
    ----------
    cliques : list of node sequences

    Returns
    -------
    order : list of int
        Cliques, every one before its parent.
    parent : list of int
        The parent of each clique, -1 at a root.

    Raises
    ------
    ValueError
        If the cliques have no junction tree: they are not those of a chordal graph.
    """
    sets = [sum(1 << v for v in clique) for clique in cliques]
    members = {}
    for c, clique in enumerate(cliques):
        for v in clique:
            members.setdefault(v, []).append(c)
    pairs = {(a, b) for group in members.values() for a in group for b in group if a < b}
    weighted = sorted((-(sets[a] & sets[b]).bit_count(), a, b) for a, b in pairs)
    leader, near = list(range(len(cliques))), [[] for _ in cliques]
    total = 0
    for weight, a, b in weighted:
        root_a, root_b = _leader_of(leader, a), _leader_of(leader, b)
        if root_a != root_b:
            leader[root_a] = root_b
            near[a].append(b)
            near[b].append(a)
            total -= weight
    # In a forest, the cliques with node v are connected iff they outnumber the separators by one.
    if sum(len(group) for group in members.values()) - total != len(members):
        raise ValueError("the cliques have no junction tree: expected those of a chordal graph")
    return _rooted(near)


def _rooted(near):
    """Root every tree at its last node; return an order with children first, and the parents."""
    parent, order = [None] * len(near), []
    for root in range(len(near) - 1, -1, -1):
        if parent[root] is not None:
            continue
        parent[root] = -1
        queue = [root]
        for c in queue:
            for b in near[c]:
                if parent[b] is None:
                    parent[b] = c
                    queue.append(b)
        order.extend(queue)
    return order[::-1], parent


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


def _leader_of(leader, c):
    while leader[c] != c:
        leader[c] = leader[leader[c]]
        c = leader[c]
    return c
