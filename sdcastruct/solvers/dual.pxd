from sdcastruct.solvers.state cimport State


cdef class DualState(State):
    cdef readonly object w, m, gaps, entropies
    cdef double[::1] w_view, m_view, gaps_view, entropies_view
