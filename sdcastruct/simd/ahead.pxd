cdef extern from "sdcastruct/simd/ahead.h" nogil:
    ctypedef struct Ahead:
        pass

    Ahead ahead_of(const void *address, Py_ssize_t n_bytes)
    void share_out "ahead_share_out"(Ahead *ahead, Py_ssize_t n)
    void ask "ahead_ask"(Ahead *ahead)
