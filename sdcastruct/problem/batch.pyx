"""Passes over all samples of a problem: conjugate weights, objectives, certificates.

Weights and gradients are packed, see `Problem.pack`. Of the `n_jobs` threads of a pass,
whoever is free takes the next stretch of samples, or, where that is summed, all have stretches that
are always alike; sums are the same each time.
"""

import numpy as np

from libc.stdint cimport int64_t
from libc.string cimport memset

from sdcastruct.entropy cimport entropy_of, mix_with_vertex
from sdcastruct.problem.problem cimport Problem
from sdcastruct.problem.stored cimport StoredMarginals
from sdcastruct.problem.truth cimport Truth
from sdcastruct.problem.workspace cimport Workspace
from sdcastruct.simd.kernels cimport kernels

from sdcastruct.problem.threads import share, spread
from sdcastruct.simd import memory

# So many numbers of two arrays stay in the first cache.
cdef Py_ssize_t NEAR = 1024


cdef int check_length(name, Py_ssize_t found, Py_ssize_t expected) except -1:
    if found != expected:
        raise ValueError(f"{name} has length {found}, expected {expected}")
    return 0


cdef int score_in_turn(Problem problem, Py_ssize_t i, Py_ssize_t upcoming, const double *w,
                       double *theta) except -1 nogil:
    """Write the scores of sample i, and ask for the weights of the upcoming one, if any."""
    if upcoming < problem.n_samples:
        problem.prefetch_weights(upcoming, w)
    return problem.score_into(i, w, theta)


def squared_norm(const double[::1] x):
    """Return ||x||^2.

    NumPy's products may start threads of a BLAS, which go on spinning beside ours.
    """
    return kernels.dot(&x[0], &x[0], x.shape[0]) if x.shape[0] else 0.0


def initial_point(Problem problem, double epsilon, out=None, int n_jobs=1, m=None, then=(),
                  first=None):
    """Return the dual point epsilon * uniform + (1 - epsilon) * truth (paper, Appendix A.1).

    Parameters
    ----------
    out : array of shape (n_marginals,), optional
        Where to write it, of type float64 or float32.
    m : array of shape (n_slot_marginals,), optional
        Where to write its slot marginals.
    then, first
        What is to be done beside, see `sdcastruct.problem.threads.share`.

    Returns
    -------
    alpha : array of shape (n_marginals,)
    m : array of shape (n_slot_marginals,)
        Its slot marginals.
    entropies : array of shape (n_samples,)
    """
    problem.check_labelled()
    cdef StoredMarginals alpha = _stored(problem, out)
    m = memory.empty(problem.n_slot_marginals) if m is None else m
    check_length("m", len(m), problem.n_slot_marginals)
    entropies = np.empty(problem.n_samples)
    cdef double[::1] m_view = m, entropies_view = entropies

    def work(stretches):
        cdef Truth labels = problem.labels
        cdef Workspace space = problem.workspace()
        cdef double log_z = 0.0
        cdef Py_ssize_t first, last, i, j
        for j in range(problem.attributes.max_slots):
            space.theta[j] = 0.0
        for first, last in stretches:
            with nogil:
                for i in range(first, last):
                    # Without scores, log Z is the entropy.
                    problem.infer_into(i, space.theta, space.beta, &log_z, space.scratch)
                    entropies_view[i] = mix_with_vertex(problem.runs(i), space.beta, epsilon,
                                                        log_z, labels.vertex(i))
                    problem.gather_into(i, space.beta, &m_view[problem.attributes.slot_ptr[i]])
                    alpha.store(i, space.beta)

    share(work, problem.n_samples, n_jobs, then, first)
    return alpha.array, m, entropies


def marginals(Problem problem, const double[::1] w, out=None, int n_jobs=1):
    """Return the dual point p(. | x_i; w), the marginals of all samples end to end.

    Parameters
    ----------
    out : array of shape (n_marginals,), optional
        Where to write it, of type float64 or float32.
    """
    check_length("w", w.shape[0], problem.dim)
    cdef StoredMarginals alpha = _stored(problem, out)

    def work(stretches):
        cdef Workspace space = problem.workspace()
        cdef double log_z = 0.0
        cdef Py_ssize_t first, last, i
        for first, last in stretches:
            with nogil:
                for i in range(first, last):
                    score_in_turn(problem, i, i + 1, &w[0], space.theta)
                    problem.infer_into(i, space.theta, space.beta, &log_z, space.scratch)
                    alpha.store(i, space.beta)

    share(work, problem.n_samples, n_jobs)
    return alpha.array


cdef StoredMarginals _stored(Problem problem, array):
    return StoredMarginals(problem, np.empty(problem.n_marginals) if array is None else array)


def summarise(Problem problem, array, double[::1] m, double[::1] entropies, int n_jobs=1, then=()):
    """Write the slot marginals and the entropies of a dual point.

    Parameters
    ----------
    array : array of shape (n_marginals,)
        The dual point. In single precision it is made consistent first: m and the entropies are
        exactly those of a dual point of which the array holds the rounded numbers.
    m : array of shape (n_slot_marginals,)
    entropies : array of shape (n_samples,)
    then : list of callables
        What is to be done beside, see `sdcastruct.problem.threads.share`.
    """
    cdef StoredMarginals alpha = StoredMarginals(problem, array)
    check_length("m", m.shape[0], problem.n_slot_marginals)
    check_length("entropies", entropies.shape[0], problem.n_samples)

    def work(stretches):
        cdef Workspace space = problem.workspace()
        cdef const double *mu
        cdef Py_ssize_t first, last, i
        for first, last in stretches:
            with nogil:
                for i in range(first, last):
                    mu = <const double *> alpha.block(i)
                    if alpha.single:
                        alpha.load(i, space.beta)
                        problem.engine.calibrate(i, space.beta, space.scratch)
                        alpha.store(i, space.beta)
                        mu = space.beta
                    problem.gather_into(i, mu, &m[problem.attributes.slot_ptr[i]])
                    entropies[i] = entropy_of(problem.runs(i), mu)

    share(work, problem.n_samples, n_jobs, then)


def conjugate_weights(Problem problem, m, double lam, w, int n_jobs=1, list spare=None):
    """Write w-hat(alpha) to w and return ||w||^2, see `ConjugateWeights`."""
    return ConjugateWeights(problem, m, lam, w, n_jobs, n_jobs, spare).put_together()


class ConjugateWeights:
    """w-hat(alpha) = 1/(lam n) sum_i s_i (F(x_i, y_i) - E_alpha_i[F(x_i, y)]), as it is summed.

    The pass that computes the slot marginals of alpha may have `parts` for what follows, so that
    some threads compute while others, which wait for memory most of the time, add. By default every
    second thread adds; so two threads need no more memory than one, and their sum is the same bit
    for bit.

    Parameters
    ----------
    m : array of shape (n_slot_marginals,)
        The slot marginals of alpha.
    w : array of shape (dim,)
        Where to write the sum.
    n_jobs, n_parts : int
        Number of threads, and of those that add, each to an array of its own.
    spare : list, optional
        More arrays like w. They are taken, and what is missing is left there.

    Attributes
    ----------
    parts : list of callables
        Each adds samples first, ..., last - 1 to an array of its own, see
        `sdcastruct.problem.threads.share`.
    """

    def __init__(self, Problem problem, m, double lam, w, n_jobs=1, n_parts=None, spare=None):
        problem.check_labelled()
        check_length("m", len(m), problem.n_slot_marginals)
        check_length("w", len(w), problem.dim)
        spare = [] if spare is None else spare
        n_others = (n_jobs + 1) // 2 - 1 if n_parts is None else n_parts - 1
        while len(spare) < n_others:
            spare.append(memory.empty(problem.dim))
        scale = 1.0 / (lam * problem.n_samples)
        self.n_samples, self.n_jobs = problem.n_samples, n_jobs
        self.parts = [_Part(problem, m, scale, part) for part in (w, *spare[:n_others])]

    def put_together(self):
        """Add all parts to w, all samples if no pass has done so; return ||w||^2."""
        first, *others = self.parts
        if not first.begun:
            share(list, self.n_samples, self.n_jobs, self.parts)
        return _sum_of_parts(first.w, [part.w for part in others if part.begun], self.n_jobs)


class _Part:
    """Adds scale s_i (F(x_i, y_i) - E_m_i[F]) of samples to w, which is made zero before."""

    def __init__(self, problem, m, scale, w):
        self.problem, self.m, self.scale, self.w = problem, m, scale, w
        self.begun = False

    def __call__(self, first, last):
        if not self.begun:
            self.begun = True
            self.space = self.problem.workspace()
            _clear(self.w)
        _add_features(self.problem, self.m, self.scale, self.w, first, last, self.space)


def _clear(double[::1] w):
    with nogil:
        memset(&w[0], 0, w.shape[0] * sizeof(double))


def _add_features(Problem problem, const double[::1] m, double scale, double[::1] w,
                  Py_ssize_t first, Py_ssize_t last, Workspace space):
    """Add scale s_i (F(x_i, y_i) - E_m_i[F]) of samples first, ..., last - 1 to w."""
    cdef const double *block
    cdef Py_ssize_t i, j
    with nogil:
        for i in range(first, last):
            block = &m[problem.attributes.slot_ptr[i]]
            for j in range(problem.n_slots(i)):
                space.m[j] = -block[j]
            problem.add_truth(i, 1.0, space.m)
            if i + 1 < last:
                problem.prefetch_weights(i + 1, &w[0])
            problem.add(i, scale * problem.weights[i], space.m, &w[0])


def _sum_of_parts(double[::1] w, list others, int n_jobs):
    """Add other arrays to w; return ||w||^2."""
    cdef const size_t[::1] addresses = np.array([part.ctypes.data for part in others], np.uintp)

    def work(Py_ssize_t first, Py_ssize_t last):
        cdef double norm2 = 0.0
        cdef Py_ssize_t begin = first, size, k
        with nogil:
            while begin < last:
                size = min(NEAR, last - begin)
                for k in range(addresses.shape[0]):
                    kernels.axpy(1.0, <const double *> addresses[k] + begin, &w[begin], size)
                norm2 += kernels.dot(&w[begin], &w[begin], size)
                begin += size
        return norm2

    return sum(spread(work, w.shape[0], n_jobs))


def losses(Problem problem, const double[::1] w):
    """Return -log p(y_i | x_i; w) of every sample, shape (n_samples,)."""
    problem.check_labelled()
    check_length("w", w.shape[0], problem.dim)
    out = np.empty(problem.n_samples)
    cdef double[::1] view = out
    cdef Workspace space = problem.workspace()
    cdef double log_z = 0.0
    cdef Py_ssize_t i
    with nogil:
        for i in range(problem.n_samples):
            score_in_turn(problem, i, i + 1, &w[0], space.theta)
            problem.log_partition_into(i, space.theta, &log_z, space)
            view[i] = log_z - problem.truth_score(i, space.theta)
    return out


def infer_each(Problem problem, const double[::1] w, samples=None):
    """Call the oracle for samples, by default all, one after the other; return their log Z_i."""
    check_length("w", w.shape[0], problem.dim)
    cdef const int64_t[::1] which = (
        np.arange(problem.n_samples) if samples is None else np.asarray(samples, np.int64))
    out = np.empty(which.shape[0])
    cdef double[::1] view = out
    cdef Workspace space = problem.workspace()
    cdef Py_ssize_t k, upcoming
    for k in range(which.shape[0]):
        problem.check_index(which[k])
    with nogil:
        for k in range(which.shape[0]):
            upcoming = which[k + 1] if k + 1 < which.shape[0] else problem.n_samples
            score_in_turn(problem, which[k], upcoming, &w[0], space.theta)
            problem.infer_into(which[k], space.theta, space.beta, &view[k], space.scratch)
    return out


def decode(Problem problem, const double[::1] w):
    """Return a most probable labelling of every sample, a list of int arrays."""
    check_length("w", w.shape[0], problem.dim)
    n_nodes = [problem.n_nodes(i) for i in range(problem.n_samples)]
    ends = np.cumsum(n_nodes)
    labels = np.empty(ends[len(ends) - 1], np.int64)
    cdef int64_t[::1] view = labels
    cdef const int64_t[::1] first = ends - n_nodes
    cdef Workspace space = problem.workspace()
    cdef Py_ssize_t i
    with nogil:
        for i in range(problem.n_samples):
            score_in_turn(problem, i, i + 1, &w[0], space.theta)
            problem.decode_into(i, space.theta, &view[first[i]], space.scratch)
    return np.split(labels, ends[:len(ends) - 1])


def scores(Problem problem, const double[::1] w):
    """Return the slot scores of all samples end to end."""
    check_length("w", w.shape[0], problem.dim)
    out = np.empty(problem.n_slot_marginals)
    cdef double[::1] view = out
    cdef Py_ssize_t i
    with nogil:
        for i in range(problem.n_samples):
            score_in_turn(problem, i, i + 1, &w[0], &view[problem.attributes.slot_ptr[i]])
    return out


def infer_slots(Problem problem, const double[::1] theta, double[::1] m):
    """Write the slot marginals of all samples at slot scores theta to m; return all log Z_i."""
    check_length("theta", theta.shape[0], problem.n_slot_marginals)
    check_length("m", m.shape[0], problem.n_slot_marginals)
    out = np.empty(problem.n_samples)
    cdef double[::1] view = out
    cdef Workspace space = problem.workspace()
    cdef int64_t first
    cdef Py_ssize_t i
    with nogil:
        for i in range(problem.n_samples):
            first = problem.attributes.slot_ptr[i]
            problem.expect_into(i, &theta[first], &m[first], &view[i], space)
    return out


def loss_and_gradient(Problem problem, const double[::1] w, int n_jobs=1):
    """Return the mean of -s_i log p(y_i | x_i; w) and its gradient."""
    problem.check_labelled()
    check_length("w", w.shape[0], problem.dim)

    def work(first, last):
        gradient = np.zeros(problem.dim)
        return _add_gradients(problem, w, first, last, gradient), gradient

    losses, gradients = zip(*spread(work, problem.n_samples, n_jobs))
    return sum(losses) / problem.n_samples, sum(gradients) / problem.n_samples


def _add_gradients(Problem problem, const double[::1] w, Py_ssize_t first, Py_ssize_t last,
                   double[::1] gradient):
    """Add the gradients of samples first, ..., last - 1; return the sum of their losses."""
    cdef Workspace space = problem.workspace()
    cdef double log_z = 0.0, total = 0.0
    cdef Py_ssize_t i
    with nogil:
        for i in range(first, last):
            score_in_turn(problem, i, i + 1, &w[0], space.theta)
            problem.expect_into(i, space.theta, space.m, &log_z, space)
            total += problem.weights[i] * (log_z - problem.truth_score(i, space.theta))
            problem.add_truth(i, -1.0, space.m)
            problem.add(i, problem.weights[i], space.m, &gradient[0])
    return total


def losses_and_gaps(Problem problem, const double[::1] w, const double[::1] m,
                    const double[::1] entropy, int n_jobs=1):
    """Return -log p(y_i | x_i; w) and KL(alpha_i || p(. | x_i; w)) of every sample, unweighted.

    The dual point is given by its slot marginals m and its entropies. At w = w-hat(alpha) the
    weighted divergences are the block duality gaps, and their mean is P - D.
    """
    cdef Py_ssize_t n = problem.n_samples
    problem.check_labelled()
    check_length("w", w.shape[0], problem.dim)
    check_length("m", m.shape[0], problem.n_slot_marginals)
    check_length("entropy", entropy.shape[0], n)
    loss, gap = np.empty(n), np.empty(n)
    cdef double[::1] loss_view = loss, gap_view = gap

    def work(stretches):
        cdef Workspace space = problem.workspace()
        cdef double log_z = 0.0, score
        cdef Py_ssize_t first, last, i
        for first, last in stretches:
            with nogil:
                for i in range(first, last):
                    score_in_turn(problem, i, i + 1, &w[0], space.theta)
                    problem.log_partition_into(i, space.theta, &log_z, space)
                    score = kernels.dot(space.theta, &m[problem.attributes.slot_ptr[i]],
                                        problem.n_slots(i))
                    loss_view[i] = log_z - problem.truth_score(i, space.theta)
                    gap_view[i] = max(0.0, log_z - entropy[i] - score)

    share(work, n, n_jobs)
    return loss, gap
