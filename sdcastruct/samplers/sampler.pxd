from numpy.random cimport bitgen_t


cdef class RandomStream:
    cdef readonly object generator
    cdef bitgen_t *bits

    cdef double uniform(self) noexcept nogil


cdef class Sampler:
    cdef readonly object refresh_every
    cdef readonly Py_ssize_t n_samples
    # Whether `next` and `observe` run without Python, so that nothing can interrupt them.
    cdef bint compiled
    # How many samples a thread may draw before it tells of the first.
    cdef Py_ssize_t ahead

    cdef Py_ssize_t next(self, RandomStream stream) except -1 nogil
    cdef int observe(self, Py_ssize_t i, double gap) except -1 nogil


cdef class CompiledSampler(Sampler):
    cdef readonly double non_uniformity

    cdef int check_ready(self) except -1
    cdef Py_ssize_t pick(self, RandomStream stream) noexcept nogil
    cdef void store(self, Py_ssize_t i, double gap) noexcept nogil
