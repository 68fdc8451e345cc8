cdef extern from "sdcastruct/simd/ahead.h" nogil:
    ctypedef struct Ahead:
        pass

    Ahead ahead_of(const void *address, Py_ssize_t n_bytes, const void *second,
                   Py_ssize_t n_bytes_of_second)
    void share_out "ahead_share_out"(Ahead *ahead, Py_ssize_t n)
    void ask "ahead_ask"(Ahead *ahead)
    void ask_for "AHEAD_PREFETCH"(const void *address)
