from libc.stdint cimport int32_t, uint32_t


cdef struct Slot:
    uint32_t tag  # hash of the attribute
    int32_t code  # its number, -1 in a free slot


cdef class Vocabulary:
    cdef Py_ssize_t size
    cdef char *text  # the attributes in UTF-8, end to end
    cdef Py_ssize_t text_capacity
    cdef Py_ssize_t *ends  # attribute a is text[ends[a]:ends[a+1]]
    cdef Py_ssize_t ends_capacity
    cdef Slot *slots
    cdef Py_ssize_t n_slots  # a power of two

    cdef int32_t find(self, const char *name, Py_ssize_t length) noexcept nogil
    cdef int32_t number(self, const char *name, Py_ssize_t length) except -1
    cdef Slot *slot_of(self, uint32_t tag, const char *name, Py_ssize_t length) noexcept nogil
    cdef int append(self, const char *name, Py_ssize_t length) except -1
    cdef int rehash(self, Py_ssize_t n_slots) except -1
