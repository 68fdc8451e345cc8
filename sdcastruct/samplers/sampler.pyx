"""The interface of a sampler, and the mixture with uniform sampling that the built-in ones share.

A solver draws a sample, visits it, learns its block duality gap g_i and tells the sampler. A
sampler of one's own is a Python class with three methods::

    class RoundRobin(Sampler):
        def reset(self, problem, lam):
            super().reset(problem, lam)
            self.last = -1

        def draw(self, rng):
            self.last = (self.last + 1) % self.n_samples
            return self.last

        def update(self, i, gap):
            pass
"""

from numbers import Integral, Real

import numpy as np

from cpython.pycapsule cimport PyCapsule_GetPointer


cdef class RandomStream:
    """The random numbers of a NumPy generator, drawn without the GIL."""

    def __init__(self, generator):
        self.generator = generator
        self.bits = <bitgen_t *> PyCapsule_GetPointer(generator.bit_generator.capsule,
                                                      "BitGenerator")

    cdef double uniform(self) noexcept nogil:
        """Return the next number in [0, 1), the same as ``generator.random()``."""
        return self.bits.next_double(self.bits.state)


cdef class Sampler:
    """Which sample next; subclass in Python and implement `draw` and, if it adapts, `update`.

    Parameters
    ----------
    refresh_every : int or None
        Recompute the gaps of all samples every so many epochs (Osokin et al. 2016) and hand them
        to `update`; None means never.
    """

    def __init__(self, refresh_every=None):
        self._set_options(refresh_every=refresh_every)

    def _set_options(self, refresh_every):
        if refresh_every is not None and (
                not isinstance(refresh_every, Integral) or refresh_every < 1):
            raise ValueError(
                f"refresh_every={refresh_every!r}: expected a positive number of epochs or None")
        self.refresh_every = refresh_every
        self.ahead = 1

    def _options(self):
        return {"refresh_every": self.refresh_every}

    def __reduce__(self):
        # A copy has the options and must be reset; what was learned belongs to one run.
        return _restore, (type(self), self._options(), getattr(self, "__dict__", {}))

    def __repr__(self):
        options = ", ".join(f"{name}={value!r}" for name, value in self._options().items())
        return f"{type(self).__name__}({options})"

    def reset(self, problem, lam):
        """Forget everything and get ready for a problem."""
        self.n_samples = problem.n_samples

    def draw(self, rng):
        """Return the index of the next sample, given a `numpy.random.Generator`."""
        raise NotImplementedError(f"{type(self).__name__} does not implement draw(rng)")

    def update(self, i, gap):
        """Learn that the block duality gap of sample i was found to be `gap`."""

    def memory(self):
        """Return what was learned since `reset`, {name: array}, for a checkpoint."""
        if getattr(self, "__dict__", None):
            raise NotImplementedError(
                f"{type(self).__name__} cannot be saved: implement memory() -> {{name: array}} and "
                "remember(memory)")
        return {}

    def remember(self, memory):
        """Take what `memory` returned."""

    cdef Py_ssize_t next(self, RandomStream stream) except -1 nogil:
        cdef Py_ssize_t i
        with gil:
            i = self.draw(stream.generator)
            if not 0 <= i < self.n_samples:
                raise IndexError(f"{type(self).__name__}.draw returned {i}, expected an index from "
                                 f"0 to {self.n_samples - 1}")
        return i

    cdef int observe(self, Py_ssize_t i, double gap) except -1 nogil:
        with gil:
            self.update(i, gap)
        return 0


cdef class CompiledSampler(Sampler):
    """A sampler that is not uniform with probability `non_uniformity`, and uniform otherwise.

    Parameters
    ----------
    non_uniformity : float in [0, 1]
    refresh_every : int or None
    """

    most_ahead = 8

    def __init__(self, non_uniformity=0.8, refresh_every=None):
        self._set_options(non_uniformity=non_uniformity, refresh_every=refresh_every)

    def _set_options(self, non_uniformity, refresh_every):
        super()._set_options(refresh_every)
        if not isinstance(non_uniformity, Real) or not 0.0 <= non_uniformity <= 1.0:
            raise ValueError(f"non_uniformity={non_uniformity!r}: expected a number in [0, 1]")
        self.non_uniformity = non_uniformity
        # A subclass in Python may replace either method; then the calls must go through Python.
        self.compiled = (type(self).draw is CompiledSampler.draw
                         and type(self).update is CompiledSampler.update)
        self.ahead = self.most_ahead if self.compiled else 1

    def _options(self):
        return {"non_uniformity": self.non_uniformity, "refresh_every": self.refresh_every}

    cdef Py_ssize_t pick(self, RandomStream stream) noexcept nogil:
        """Return a sample by the non-uniform rule."""
        return 0

    cdef void store(self, Py_ssize_t i, double gap) noexcept nogil:
        """Remember a gap."""

    cdef Py_ssize_t next(self, RandomStream stream) except -1 nogil:
        if not self.compiled:
            return Sampler.next(self, stream)
        return draw_mixture(self, stream)

    cdef int observe(self, Py_ssize_t i, double gap) except -1 nogil:
        if not self.compiled:
            return Sampler.observe(self, i, gap)
        self.store(i, gap)
        return 0

    def draw(self, rng):
        """Return the index of the next sample, given a `numpy.random.Generator`."""
        self.check_ready()
        return draw_mixture(self, RandomStream(rng))

    def update(self, i, gap):
        """Learn that the block duality gap of sample i was found to be `gap`."""
        if not 0 <= i < self.n_samples:
            raise IndexError(f"sample {i}: expected an index from 0 to {self.n_samples - 1}")
        if not gap >= 0.0:
            raise ValueError(f"gap={gap!r}: expected a number >= 0")
        self.store(i, gap)

    cdef int check_ready(self) except -1:
        if self.n_samples == 0:
            raise RuntimeError(f"{type(self).__name__} is used before reset(problem, lam)")
        return 0

    def weights(self):
        """Return what the non-uniform rule is proportional to, shape (n_samples,)."""
        self.check_ready()
        return np.ones(self.n_samples)

    def probabilities(self):
        """Return the probability of every sample in the next draw, shape (n_samples,)."""
        weights = self.weights()
        total = weights.sum()
        share = weights / total if total > 0.0 else np.full(self.n_samples, 1.0 / self.n_samples)
        return self.non_uniformity * share + (1.0 - self.non_uniformity) / self.n_samples


cdef Py_ssize_t draw_mixture(CompiledSampler sampler, RandomStream stream) noexcept nogil:
    if sampler.non_uniformity > 0.0 and stream.uniform() < sampler.non_uniformity:
        return sampler.pick(stream)
    return <Py_ssize_t> (stream.uniform() * sampler.n_samples)


def _restore(cls, options, attributes):
    """Make a copy of a sampler from its options and its Python attributes."""
    sampler = cls.__new__(cls)
    sampler._set_options(**options)
    for name, value in attributes.items():
        setattr(sampler, name, value)
    return sampler
