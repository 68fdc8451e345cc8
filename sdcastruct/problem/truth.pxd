from libc.stdint cimport int64_t

from sdcastruct.entropy cimport Vertex


cdef class Truth:
    cdef const int64_t[::1] region_ptr, region, slot_ptr, slot

    cdef Vertex vertex(self, Py_ssize_t i) noexcept nogil
