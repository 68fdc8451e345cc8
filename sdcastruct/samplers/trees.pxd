cdef class Tree:
    cdef readonly Py_ssize_t n_leaves
    cdef Py_ssize_t first_leaf
    cdef double[::1] nodes

    cdef double combine(self, double left, double right) noexcept nogil
    cdef void set(self, Py_ssize_t i, double value) noexcept nogil


cdef class SumTree(Tree):
    cdef Py_ssize_t search(self, double u) noexcept nogil


cdef class MaxTree(Tree):
    cdef Py_ssize_t argmax(self) noexcept nogil
