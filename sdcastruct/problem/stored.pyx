"""The marginals of all samples as they are kept: in double or single precision, in memory or file.

They are most of what dual methods remember. Single precision halves that; then what is stored is no
longer exactly consistent, the table of an edge and those of its nodes differ in the last digits,
and `Engine.calibrate` must make it consistent again before it counts as a dual point.
"""

import tempfile

import numpy as np

from sdcastruct.simd.kernels cimport kernels

from sdcastruct.simd import memory


def empty(Py_ssize_t size, dtype, folder=None):
    """Return an array for marginals, in memory or in a nameless file that lives as long as it.

    Parameters
    ----------
    size : int
    dtype : {"float64", "float32"}
    folder : str or Path, optional
        Where the file is made, which is as large as the array.
    """
    if folder is None:
        return memory.empty(size, dtype)
    with tempfile.TemporaryFile(dir=folder) as file:
        file.truncate(size * np.dtype(dtype).itemsize)
        return np.memmap(file, dtype, "r+", shape=(size,))


cdef class StoredMarginals:
    """Access to the marginals of each sample of a problem.

    Parameters
    ----------
    problem : Problem
    array : array of shape (n_marginals,)
        Of type float64 or float32.
    """

    def __init__(self, Problem problem, array):
        if array.dtype not in (np.float64, np.float32) or not array.flags.c_contiguous:
            raise TypeError(f"alpha is an array of {array.dtype}: expected a contiguous one of "
                            "float64 or float32")
        if array.shape != (problem.n_marginals,):
            raise ValueError(f"alpha has shape {array.shape}, expected ({problem.n_marginals},)")
        self.array = array
        self.single = array.dtype == np.float32
        self.data = array.view(np.uint8)
        self.region_ptr = problem.regions.region_ptr

    cdef const Storage *storage(self) noexcept nogil:
        return &kernels.float32 if self.single else &kernels.float64

    cdef void *block(self, Py_ssize_t i) noexcept nogil:
        """Return where the marginals of sample i begin."""
        return &self.data[self.region_ptr[i] * self.storage().size]

    cdef void load(self, Py_ssize_t i, double *mu) noexcept nogil:
        self.storage().load(self.block(i), mu, self.region_ptr[i + 1] - self.region_ptr[i])

    cdef void store(self, Py_ssize_t i, const double *mu) noexcept nogil:
        self.storage().store(mu, self.block(i), self.region_ptr[i + 1] - self.region_ptr[i])
