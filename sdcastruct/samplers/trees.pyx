"""Binary trees over the samples: O(log n) to change a weight and to draw in proportion to it.

Node k has the children 2k and 2k + 1, node 1 is the root, and the leaves are the last level. An
inner node is recomputed from its children whenever one changes, so that rounding errors do not
pile up: the root is always the sum of the leaves as the tree adds them.
"""

import numpy as np


cdef class Tree:
    """A complete binary tree whose inner nodes combine their children.

    Parameters
    ----------
    weights : array of shape (n,), n >= 1
        Values of the leaves, >= 0.
    """

    def __init__(self, weights):
        cdef Py_ssize_t k
        values = np.ascontiguousarray(weights, dtype=np.float64)
        if values.ndim != 1 or values.size == 0:
            raise ValueError(f"weights has shape {values.shape}, expected (n,) with n >= 1")
        if not (values >= 0.0).all():
            raise ValueError("weights must be >= 0 and not NaN")
        self.n_leaves = values.size
        self.first_leaf = 1
        while self.first_leaf < self.n_leaves:
            self.first_leaf *= 2
        nodes = np.zeros(2 * self.first_leaf)
        nodes[self.first_leaf:self.first_leaf + self.n_leaves] = values
        self.nodes = nodes
        for k in range(self.first_leaf - 1, 0, -1):
            self.nodes[k] = self.combine(self.nodes[2 * k], self.nodes[2 * k + 1])

    cdef double combine(self, double left, double right) noexcept nogil:
        return left + right

    cdef void set(self, Py_ssize_t i, double value) noexcept nogil:
        cdef Py_ssize_t k = self.first_leaf + i
        self.nodes[k] = value
        while k > 1:
            k //= 2
            self.nodes[k] = self.combine(self.nodes[2 * k], self.nodes[2 * k + 1])

    def update(self, Py_ssize_t i, double value):
        """Set the weight of leaf i."""
        if not 0 <= i < self.n_leaves:
            raise IndexError(f"leaf {i} of a tree with {self.n_leaves} leaves")
        if not value >= 0.0:
            raise ValueError(f"value={value!r}: expected a number >= 0")
        self.set(i, value)

    def __getitem__(self, Py_ssize_t i):
        if not 0 <= i < self.n_leaves:
            raise IndexError(f"leaf {i} of a tree with {self.n_leaves} leaves")
        return self.nodes[self.first_leaf + i]

    @property
    def leaves(self):
        """Weights of all leaves, shape (n,)."""
        return np.asarray(self.nodes[self.first_leaf:self.first_leaf + self.n_leaves]).copy()

    @property
    def root(self):
        """All leaves combined."""
        return self.nodes[1]


cdef class SumTree(Tree):
    """A tree of sums, to draw leaves in proportion to their weights."""

    cdef Py_ssize_t search(self, double u) noexcept nogil:
        cdef Py_ssize_t k = 1
        while k < self.first_leaf:
            k *= 2
            # Rounding may carry u past the left subtree although the right one is empty.
            if u >= self.nodes[k] and self.nodes[k + 1] > 0.0:
                u -= self.nodes[k]
                k += 1
        return k - self.first_leaf

    def find(self, double u):
        """Return the leaf i with leaf_0 + ... + leaf_{i-1} <= u < leaf_0 + ... + leaf_i."""
        if not 0.0 <= u < self.root:
            raise ValueError(f"u={u!r}: expected a number in [0, {self.root})")
        return self.search(u)

    @property
    def total(self):
        """Sum of all leaves."""
        return self.root


cdef class MaxTree(Tree):
    """A tree of maxima, to find the largest leaf."""

    cdef double combine(self, double left, double right) noexcept nogil:
        return left if left >= right else right

    cdef Py_ssize_t argmax(self) noexcept nogil:
        cdef Py_ssize_t k = 1
        while k < self.first_leaf:
            k *= 2
            if self.nodes[k + 1] > self.nodes[k]:
                k += 1
        return k - self.first_leaf
