"""The interface of an inference engine: from slot scores to region marginals."""


cdef class Engine:
    """Inference on the graphs of n samples; subclass in Cython and implement the methods.

    Without `calibrate`, dual points can only be stored in double precision. An engine whose tables
    are products of small factors may set `factors` and implement `expect`, `complete` and
    `products`, and say `max_products`: then most steps of SDCA never write them out.

    They run without the GIL and may raise (``with gil: raise ...``). Scratch memory belongs to the
    caller, so one engine serves many threads.
    """

    cdef Py_ssize_t n_nodes(self, Py_ssize_t i) except -1 nogil:
        """Return the number of nodes of sample i, the number of labels that `decode` writes."""
        with gil:
            raise NotImplementedError(f"{type(self).__name__} does not implement n_nodes")

    cdef void prefetch_place(self, Py_ssize_t i) noexcept nogil:
        """Ask for where what is known of the graph of sample i begins (simd/ahead.pxd)."""

    cdef void prefetch(self, Py_ssize_t i) noexcept nogil:
        """Ask for what is known of the graph of sample i."""

    cdef int infer(self, Py_ssize_t i, const double *theta, double *mu, double *log_z,
                   double *scratch) except -1 nogil:
        """Write the region marginals and the log-partition function of sample i at scores theta."""
        with gil:
            raise NotImplementedError(f"{type(self).__name__} does not implement infer")

    cdef int log_partition(self, Py_ssize_t i, const double *theta, double *mu, double *log_z,
                           double *scratch) except -1 nogil:
        """Write the log-partition function only; mu may serve as scratch memory."""
        return self.infer(i, theta, mu, log_z, scratch)

    cdef bint expect(self, Py_ssize_t i, const double *theta, double *m, double *mu,
                     double *log_z, double *scratch, Ahead *ahead) except -1 nogil:
        """Write the slot marginals m and the log-partition function of sample i at scores theta.

        The caller will need the memory `ahead` then: an engine should `share_out` and `ask` for it
        on the way (simd/ahead.pxd). Who leaves it alone makes the caller wait.
        Returns whether some of the region marginals mu are still factors in the scratch memory;
        otherwise all of them are written.
        """
        with gil:
            raise NotImplementedError(f"{type(self).__name__} does not implement expect")

    cdef void complete(self, Py_ssize_t i, double *mu, double *scratch) noexcept nogil:
        """Write the region marginals that `expect` has left as factors."""

    cdef Py_ssize_t products(self, Py_ssize_t i, double *scratch, const Storage *storage,
                             Product *out) noexcept nogil:
        """Write the factors that `expect` has left, and return how many tables are their products.

        These tables are the last ones of mu, square, with the counting number 1, at most
        `max_products`. They point into the scratch memory and live as long as what it holds.
        """
        return 0

    cdef int calibrate(self, Py_ssize_t i, double *mu, double *scratch) except -1 nogil:
        """Make region tables consistent that rounding has made slightly inconsistent.

        Every table becomes exactly what the conditional distributions of the given ones, down from
        the roots of the junction tree, say together.
        """
        with gil:
            raise NotImplementedError(f"{type(self).__name__} does not implement calibrate")

    cdef int decode(self, Py_ssize_t i, const double *theta, int64_t *y,
                    double *scratch) except -1 nogil:
        """Write a labelling of sample i with the highest score."""
        with gil:
            raise NotImplementedError(f"{type(self).__name__} does not implement decode")

    def graph(self, Py_ssize_t i):
        """Return bytes that are equal for samples with the same graph, or b"" if unknown.

        They keep the dual point of one problem from being taken for that of another.
        """
        return b""
