from sdcastruct.solvers.state cimport State


cdef class DualState(State):
    cdef readonly object w, m, gaps, entropies
    # Arrays like w for the threads of a pass.
    cdef list spare
    cdef double[::1] w_view, m_view, gaps_view, entropies_view
