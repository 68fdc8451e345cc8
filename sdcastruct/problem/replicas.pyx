"""Frequent rows of weights, of which every thread has a replica.

A row of weights that two processors change in turn has to travel from one to the other for every
change. Rare rows have to come from memory anyway, but for frequent ones this takes longer than all
else that a step does with them. So each thread has replicas of the frequent rows, and adds what it
has changed to the common ones from time to time::

    common += own - last,     own = last = common

Nothing is lost by that; it is only seen later. But threads that all adapt a row to their samples,
each as if it were alone, overshoot if they do so for too long. So the more frequent a row is, the
sooner it is exchanged: level l exchanges the rows that occur at least `OCCURRENCES` times in 2^l
steps of every thread, after that many steps, and level 0 also all that are more frequent. That is
some dozens of rows a step, because there are about twice as many rows that are half as frequent.
"""

import numpy as np

from sdcastruct.problem.attributes cimport Attributes, Template
from sdcastruct.simd.kernels cimport kernels

from sdcastruct.simd import memory

# How often a row occurs in the steps of all threads between two exchanges, up to twice as often
# unless it is among the most frequent.
OCCURRENCES = 8
# Steps of all threads between two exchanges: no replicas of rows so rare that there would be more,
# or more than a part of an epoch.
MOST_STEPS, PART = 512, 1.0 / 16.0
# Rows are counted in so many samples, drawn at random if there are more.
COUNTED = 2048


cdef class Replicas:
    """The replicas of a number of threads.

    Attributes
    ----------
    problems : list of Problem
        One per thread: the same problem, but what it reads and writes of frequent rows, of whatever
        weights it is given, are the thread's own. It serves for `score`, `norm2` and `add` only.

    Parameters
    ----------
    problem : Problem
        After `Attributes.prepare_norms`. Feature maps written in Python have no replicas.
    n_threads : int
    """

    def __init__(self, Problem problem, Py_ssize_t n_threads):
        cdef Template template
        self.problem = problem
        most = min(MOST_STEPS, int(PART * problem.n_samples)) // n_threads
        self.n_levels = max(1, most.bit_length())
        replicated = type(problem.attributes) is Attributes
        templates = problem.attributes.templates if replicated else []
        n_counted = min(problem.n_samples, COUNTED)
        rng = np.random.default_rng(0)
        self.counted = np.sort(rng.choice(problem.n_samples, n_counted, replace=False))
        self.rows, self.templates = [], []
        self.starts = np.zeros(len(templates) + 1, np.intp)
        self.lengths = np.zeros((self.n_levels, len(templates)), np.intp)
        for k, template in enumerate(templates):
            size = self._choose_rows(k, template, n_threads)
            self.starts[k + 1] = memory.whole_lines(self.starts[k] + size)
        self.common = memory.empty(max(1, self.starts[len(templates)]))
        self.threads = [Replica(self) for _ in range(n_threads if replicated else 0)]
        self.problems = [problem.with_attributes(replica) for replica in self.threads]
        if not replicated:
            self.problems = [problem] * n_threads

    def _choose_rows(self, k, Template template, n_threads):
        """Find the frequent rows of template k; return how many numbers they are."""
        _, width = template.weights
        frequency = template.frequencies(self.counted)
        bounds = OCCURRENCES / (n_threads * 2.0 ** np.arange(self.n_levels))
        rows = np.flatnonzero(frequency >= bounds[self.n_levels - 1])
        rows = rows[np.argsort(-frequency[rows], kind="stable")]
        number = np.arange(template.n_attributes, dtype=np.int32)
        number[rows] = template.n_attributes + np.arange(rows.size)
        self.rows.append(rows)
        self.templates.append(template.renumbered(number) if rows.size else template)
        for level, bound in enumerate(bounds):
            self.lengths[level, k] = width * np.count_nonzero(frequency[rows] >= bound)
        return width * rows.size

    def parts(self, array):
        """Return the rows of each template in an array of replicas."""
        return [array[start:start + rows.size * template.weights[1]]
                for start, rows, template in zip(self.starts, self.rows, self.templates)]

    def _tables(self, w):
        """Yield the weights of each template, its frequent rows, and what is common of them."""
        for template, rows, common in zip(self.templates, self.rows, self.parts(self.common)):
            where, width = template.weights
            yield w[where].reshape(-1, width), rows, np.asarray(common).reshape(-1, width)

    def begin(self, w):
        """Make all replicas of weights that nobody changes meanwhile."""
        for table, rows, common in self._tables(w):
            common[...] = table[rows]
        for replica in self.threads:
            replica.begin()

    def end(self, w):
        """Write all that threads have changed to the weights."""
        for replica in self.threads:
            replica.end()
        for table, rows, common in self._tables(w):
            table[rows] = common


cdef class Replica(Attributes):
    """The attributes as one thread knows them, with its own replicas of frequent weights."""

    def __init__(self, Replicas replicas):
        self.common, self.n_levels = replicas.common, replicas.n_levels
        self.starts, self.lengths = replicas.starts, replicas.lengths
        self.own, self.last = (memory.empty(self.common.size) for _ in range(2))
        parts = zip(replicas.templates, replicas.parts(self.own))
        super().__init__(replicas.problem.attributes.slot_ptr,
                         [template.with_replicas(rows) for template, rows in parts])

    def begin(self):
        """Take the common rows."""
        self.n_steps = 0
        self.own[:] = self.common
        self.last[:] = self.common

    def end(self):
        """Add all changes to the common rows."""
        self.exchange_level(self.n_levels - 1)

    def count_step(self):
        """Exchange what is due after another step; steps of SDCA do so themselves."""
        self.exchange_weights()

    cdef void exchange_weights(self) noexcept nogil:
        cdef Py_ssize_t level = 0, steps
        self.n_steps += 1
        steps = self.n_steps
        while level < self.n_levels - 1 and steps % 2 == 0:
            level += 1
            steps //= 2
        self.exchange_level(level)

    cdef void exchange_level(self, Py_ssize_t level) noexcept nogil:
        cdef Py_ssize_t k, start
        for k in range(self.lengths.shape[1]):
            start = self.starts[k]
            kernels.exchange(&self.own[0] + start, &self.last[0] + start,
                             &self.common[0] + start, self.lengths[level, k])
