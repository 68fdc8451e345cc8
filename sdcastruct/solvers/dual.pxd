from sdcastruct.problem.workspace cimport Workspace
from sdcastruct.solvers.state cimport State


cdef class DualState(State):
    cdef readonly object w, m, gaps, entropies
    cdef readonly double norm2
    # Arrays like w for the threads of a pass.
    cdef list spare
    cdef double[::1] w_view, m_view, gaps_view, entropies_view

    cdef void note_change(self, Workspace space, double scale, double along,
                          double norm2) noexcept nogil
