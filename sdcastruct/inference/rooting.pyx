"""Forests: whether edges form one, and how its trees hang from their roots."""

import numpy as np

from libc.stdint cimport int32_t, int64_t

from sdcastruct.inference.sum_product cimport Link


def closing_edge(const int64_t[::1] node_ptr, const int64_t[::1] edge_ptr,
                 const int64_t[:, ::1] edges):
    """Return the sample and the index there of the first edge that closes a cycle, or None."""
    cdef int64_t[::1] leader = np.arange(node_ptr[node_ptr.shape[0] - 1])
    cdef Py_ssize_t i, e
    cdef int64_t u, v
    for i in range(node_ptr.shape[0] - 1):
        for e in range(edge_ptr[i], edge_ptr[i + 1]):
            u = _leader_of(leader, node_ptr[i] + edges[e, 0])
            v = _leader_of(leader, node_ptr[i] + edges[e, 1])
            if u == v:
                return i, e - edge_ptr[i]
            leader[u] = v
    return None


cdef int64_t _leader_of(int64_t[::1] leader, int64_t v) noexcept nogil:
    """Return the node that stands for the component of v; shorten the way there."""
    while leader[v] != v:
        leader[v] = leader[leader[v]]
        v = leader[v]
    return v


def rooted(const int64_t[::1] node_ptr, const int64_t[::1] edge_ptr,
           const int64_t[:, ::1] edges, const int64_t[::1] tables):
    """Root every tree at its last node; return the links of all samples, children first."""
    cdef Py_ssize_t n = node_ptr.shape[0] - 1
    links = np.full((node_ptr[n], 5), -1, np.int32)
    cdef int32_t[:, ::1] view = links
    longest = np.diff(node_ptr).max()
    # Half-edges around each node as linked lists: half 2 e + s leaves edges[e, s].
    cdef int64_t[::1] first_half = np.empty(longest, np.int64)
    cdef int64_t[::1] next_half = np.empty(2 * max(edges.shape[0], 1), np.int64)
    cdef int32_t[::1] seen = np.empty(longest, np.int32)
    cdef Py_ssize_t i, T, e, v, w, side, root, done, filled
    cdef int64_t half
    cdef Link *queue
    for i in range(n):
        T = node_ptr[i + 1] - node_ptr[i]
        for v in range(T):
            first_half[v], seen[v] = -1, 0
        for e in range(edge_ptr[i], edge_ptr[i + 1]):
            for side in range(2):
                next_half[2 * e + side] = first_half[edges[e, side]]
                first_half[edges[e, side]] = 2 * e + side
        # Breadth first, written from the end, so that children come before their parents.
        queue = <Link *> &view[node_ptr[i], 0] + T - 1
        done = filled = 0
        for root in range(T - 1, -1, -1):
            if not seen[root]:
                seen[root] = 1
                queue[-filled].child = root
                filled += 1
            while done < filled:
                v = queue[-done].child
                done += 1
                half = first_half[v]
                while half >= 0:
                    e, side = half // 2, half % 2
                    w = edges[e, 1 - side]
                    if not seen[w]:
                        seen[w] = 1
                        queue[-filled] = Link(w, v, e - edge_ptr[i], tables[e], side == 0)
                        filled += 1
                    half = next_half[half]
    return links
