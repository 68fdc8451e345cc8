from libc.stdint cimport int64_t


cdef class Truth:
    cdef const int64_t[::1] region_ptr, region, slot_ptr, slot
