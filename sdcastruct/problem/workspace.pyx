"""The memory that a thread works in."""

from libc.stdlib cimport free, malloc

from sdcastruct.inference.engine cimport Engine
from sdcastruct.problem.attributes cimport Attributes
from sdcastruct.problem.regions cimport Regions

from sdcastruct.simd import memory


cdef class Workspace:
    """Memory for one step on any sample, and what one thread keeps between steps.

    Made by `Problem.workspace`.
    """

    def __cinit__(self, Attributes attributes, Regions regions, Engine engine):
        self.products = <Product *> malloc(max(1, engine.max_products) * sizeof(Product))
        if self.products == NULL:
            raise MemoryError

    def __init__(self, Attributes attributes, Regions regions, Engine engine):
        cdef Py_ssize_t n_slots = memory.whole_lines(attributes.max_slots)
        cdef Py_ssize_t n_regions = memory.whole_lines(regions.max_regions)
        self.memory = memory.empty(2 * n_slots + n_regions + engine.scratch_size)
        self.theta = &self.memory[0]
        self.m = self.theta + n_slots
        self.beta = self.m + n_slots
        self.scratch = self.beta + n_regions

    def __dealloc__(self):
        free(self.products)
