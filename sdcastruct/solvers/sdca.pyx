"""Stochastic dual coordinate ascent for CRFs (paper, Algorithm 2).

State: the dual point alpha (the region marginals of every sample) and w = w-hat(alpha). A step on
sample i moves its block towards beta_i = p(. | x_i; w) and keeps w conjugate::

    alpha_i <- (1 - gamma) alpha_i + gamma beta_i,     w <- w + gamma v_i
    v_i = 1/(lam n) A_i (beta_i - alpha_i) = -1/(lam n) (E_beta_i[F] - E_alpha_i[F])

with gamma from an exact line search on the dual, which needs no further call of the oracle. The
block duality gap g_i = KL(alpha_i || beta_i) = log Z_i - H(alpha_i) - <theta_i, m_i> costs no
logarithm, because the entropy of every block is kept; it feeds the sampler and the estimate of the
total gap. Only a full pass certifies: it rebuilds w from alpha and recomputes every gap.
"""

import copy

import numpy as np

from libc.math cimport sqrt
from libc.stdint cimport int64_t

from sdcastruct.entropy cimport (
    Divergence,
    LineSearch,
    Objective,
    Segment,
    Vertex,
    entropy_from_vertex,
    is_near_vertex,
    mix,
    quadratic_start,
    search,
)
from sdcastruct.problem.problem cimport Problem
from sdcastruct.problem.replicas cimport Replicas
from sdcastruct.problem.stored cimport StoredMarginals
from sdcastruct.problem.workspace cimport Workspace
from sdcastruct.simd.ahead cimport ahead_of, ask_for
from sdcastruct.simd.kernels cimport kernels
from sdcastruct.solvers.dual cimport DualState

from sdcastruct.problem import batch, stored
from sdcastruct.samplers import Gap
from sdcastruct.simd import memory
from sdcastruct.solvers.base import Solver, start_of
from sdcastruct.solvers.options import (
    check_choice,
    check_folder,
    check_integer,
    check_number,
    check_sampler,
    generator,
)
from sdcastruct.solvers.state import threads_for

# In single precision a divergence is wrong by at most about this part of itself for each node. That
# will do for a line search that need not be more precise than ten times that.
cdef double SINGLE_PRECISION = 2e-6, SINGLE_PART = 0.1
# Smaller gains are none.
cdef double SMALLEST_GAIN = 1e-16
# A gap need not be computed if it is known this well: a doubt of at most so many times itself.
cdef double TRUST = 8.0
# The quadratic model of a divergence g may be too small by g gamma (1 - gamma), which is all that
# convexity allows. But its error is of third order: we count SKEW sqrt(g) times that, if it is
# less, except in the first step of a sample, which may be from near a vertex.
cdef double SKEW = 0.5
# What rounding does to the entropy of a sample, relative to it: of the sums, and of what is stored.
cdef double ROUNDING = 1e-14, ROUNDING_OF_SINGLE = 1e-7


class SDCA(Solver):
    """Stochastic dual coordinate ascent.

    With ``solve(..., n_jobs=2)`` or more, threads step at once on samples of their own and share
    the weights, but for replicas of frequent ones. Certificates are as exact as with one thread,
    because they rebuild the weights from the dual point; so does every epoch of more than four
    threads, which lose some of what the others write. But two runs are no longer the same bit for
    bit.

    Parameters
    ----------
    sampler : Sampler, default Gap(non_uniformity=0.8)
        Which sample next.
    subprecision : float, default 0.2
        The line search ends when its next Newton step would be at most this part of gamma.
    max_newton : int, default 50
        Most Newton steps of a line search.
    start : {"quadratic", "previous"} or float in (0, 1], default "quadratic"
        Where the line search begins: the maximum of the quadratic model that is exact near the
        optimum, the sample's previous step size, or a fixed number (the paper uses 0.5).
    step_size : float in (0, 1] or "safe", optional
        A fixed step size instead of a line search; "safe" is 1 / (1 + max R_i / (lam n)), which
        the theory guarantees.
    search_every : int, default 16
        Search on every `search_every`-th visit of a sample. In between it takes the step size of
        the quadratic model and keeps the entropy that follows from it, or in a first step from
        that of beta; a gap that is not known well is computed before. With 1 or 2 every step
        raises the dual; with more, a few may lower it a little.
    epsilon : float in (0, 1], default 1e-5
        Weight of the uniform distribution in the initial point; the rest is on the true labels.
    dual_dtype : {"float64", "float32"}, default "float64"
        How the marginals are stored, which are most of the memory. Certificates are exact either
        way, but single precision cannot get much below a relative gap of 1e-7.
    dual_folder : str or Path, optional
        Keep the marginals in a file in this folder, mapped into memory, for problems that do not
        fit there. The file has no name and is gone when the state is.
    random_state : int, numpy.random.Generator or None
        Seed of the sampling.
    """

    threads = True

    def __init__(self, sampler=None, subprecision=0.2, max_newton=50, start="quadratic",
                 step_size=None, search_every=16, epsilon=1e-5, dual_dtype="float64",
                 dual_folder=None, random_state=None):
        check_sampler(sampler)
        check_number("subprecision", subprecision, 0.0, np.inf)
        check_number("epsilon", epsilon, 0.0, 1.0)
        check_integer("max_newton", max_newton, 1)
        check_integer("search_every", search_every, 1)
        if start not in ("quadratic", "previous"):
            check_number("start", start, 0.0, 1.0, "'quadratic', 'previous' or ")
        if step_size is not None and step_size != "safe":
            check_number("step_size", step_size, 0.0, 1.0, "None, 'safe' or ")
        check_choice("dual_dtype", dual_dtype, ("float64", "float32"))
        check_folder("dual_folder", dual_folder)
        self.sampler = Gap() if sampler is None else sampler
        self.subprecision = subprecision
        self.max_newton = max_newton
        self.start = start
        self.step_size = step_size
        self.search_every = search_every
        self.epsilon = epsilon
        self.dual_dtype = dual_dtype
        self.dual_folder = dual_folder
        generator(random_state)
        self.random_state = random_state

    def init(self, problem, lam, warm_start=None, n_jobs=1):
        """Return the state from which training starts.

        Parameters
        ----------
        warm_start : Result, state or array of shape (dim,), optional
            Start from the dual point of an earlier run of SDCA, perhaps with another lam or with
            fewer samples; or from the marginals at the weights of any other solver.
        n_jobs : int
            Number of threads.
        """
        check_number("lam", lam, 0.0, np.inf)
        other, w = start_of(problem, warm_start)
        if self.dual_dtype == "float32" and not problem.engine.calibrates:
            raise ValueError(f"dual_dtype='float32': {type(problem.engine).__name__} cannot make "
                             "rounded marginals consistent, expected 'float64'")
        alpha = stored.empty(problem.n_marginals, self.dual_dtype, self.dual_folder)
        started = None
        if w is None and n_jobs > 1 and problem.attributes.templates:
            started = self._start(problem, lam, alpha, n_jobs)
        problem.attributes.prepare_norms(n_jobs)
        cdef SDCAState state = SDCAState(self, problem, lam, copy.deepcopy(self.sampler))
        state.n_jobs = n_jobs
        if isinstance(other, SDCAState) and (problem.knows_graphs()
                                             or problem.begins_with(other.problem)):
            state.check_follows(other)
            batch.initial_point(problem, self.epsilon, alpha, n_jobs)
            state.begin_as(other, state.start_from, alpha, other.alpha)
        elif w is not None:
            state.start_from(batch.marginals(problem, w, alpha, n_jobs))
            state.refresh()
        else:
            summary, state.replicas = started or self._start(problem, lam, alpha, n_jobs)
            state.start_from(alpha, None, summary)
        self._set_line_search(state, problem, lam)
        return state

    def _start(self, problem, lam, alpha, n_jobs):
        """Write the initial point to alpha; return its summary, see `begin`, and replicas, if any.

        One of the threads prepares the norms meanwhile, and takes part then.
        """
        n_threads, prepared = threads_for(problem, n_jobs), []

        def prepare():
            problem.attributes.prepare_norms()
            prepared.append(Replicas(problem, n_threads) if n_threads > 1 else None)

        m, w = memory.empty(problem.n_slot_marginals), memory.empty(problem.dim)
        weights = batch.ConjugateWeights(problem, m, lam, w, n_jobs)
        _, _, entropies = batch.initial_point(problem, self.epsilon, alpha, n_jobs, m,
                                              weights.parts, prepare)
        return (m, entropies, w, weights.put_together()), *prepared

    def _set_line_search(self, SDCAState state, problem, lam):
        state.line_search = LineSearch(self.subprecision, self.max_newton)
        if self.step_size is not None:
            state.line_search.max_newton = 0
            gamma = self.step_size
            if gamma == "safe":
                gamma = 1.0 / (1.0 + problem.radii().max() / (lam * problem.n_samples))
            state.first_gamma = ConstantGamma(gamma)
        elif self.start == "quadratic":
            state.first_gamma = FirstGamma()
        elif self.start == "previous":
            state.first_gamma = PreviousGamma()
        else:
            state.first_gamma = ConstantGamma(self.start)
        state.search_every = self.search_every


cdef class FirstGamma:
    """Where a line search begins: by default at the maximum of its quadratic model."""

    cdef double get(self, double gap, double curvature, double previous) noexcept nogil:
        return quadratic_start(gap, curvature)


cdef class ConstantGamma(FirstGamma):
    cdef double gamma

    def __init__(self, double gamma):
        self.gamma = gamma

    cdef double get(self, double gap, double curvature, double previous) noexcept nogil:
        return self.gamma


cdef class PreviousGamma(FirstGamma):
    cdef double get(self, double gap, double curvature, double previous) noexcept nogil:
        return previous


cdef class SDCAState(DualState):
    """Everything that a run of SDCA knows; made by `SDCA.init`.

    Attributes
    ----------
    alpha : array of shape (n_marginals,)
        Dual point: the region marginals of all samples, of type `dual_dtype`.
    doubts : array of shape (n_samples,)
        How far we expect the kept entropy of each sample to be off at most, by the models of steps
        without a search and by single precision.
    n_evaluations : int
        Evaluations of the line search so far.
    coupling : float
        How many times its own changes a step adds to w: 1, but for a part of a problem whose other
        parts change at the same time (sigma' of CoCoA+, see `sdcastruct.distributed`).
    w, m, gaps, entropies, norm2, n_updates, n_oracle_calls
        See `DualState` and `State`.
    """

    cdef readonly object alpha, gammas, visits, doubts
    cdef readonly int64_t n_evaluations
    cdef public double coupling
    cdef LineSearch line_search
    cdef FirstGamma first_gamma
    cdef int64_t search_every
    cdef StoredMarginals stored
    cdef double[::1] gammas_view, doubts_view
    cdef int64_t[::1] visits_view

    def __cinit__(self, *args):
        self.coupling = 1.0

    def start_from(self, alpha, gaps=None, summary=None):
        """Take a dual point, and what is known of it, see `begin`."""
        self.alpha = alpha
        self.gammas = np.full(self.problem.n_samples, 0.5)
        self.visits = np.zeros(self.problem.n_samples, np.int64)
        self.doubts = np.zeros(self.problem.n_samples)
        self.stored, self.gammas_view = StoredMarginals(self.problem, alpha), self.gammas
        self.visits_view, self.doubts_view = self.visits, self.doubts
        self.begin(gaps, summary)

    def recompute(self, then=()):
        """Write the slot marginals and entropies of alpha."""
        batch.summarise(self.problem, self.alpha, self.m, self.entropies, self.n_jobs, then)
        self.doubts[:] = 0.0

    cdef bint knows_gap(self, Py_ssize_t i, double gap) noexcept nogil:
        """Return whether the gap that follows from the kept entropy of sample i may be trusted."""
        return 0.0 < gap and self.doubts_view[i] <= TRUST * gap

    cdef Divergence search_from(self, Problem problem, Workspace space, Py_ssize_t i,
                                Segment *segment, Objective f, int max_newton,
                                double *gamma) noexcept nogil:
        """Search from gamma on, in single precision where that will do; return KL(m || beta).

        The kept entropy of sample i is that of m then.
        """
        cdef double precision = SINGLE_PRECISION * problem.engine.n_nodes(i), start = gamma[0]
        cdef double rounding = ROUNDING_OF_SINGLE if self.stored.single else ROUNDING
        cdef LineSearch options = LineSearch(self.line_search.subprecision, max_newton)
        cdef Divergence KL
        if precision > SINGLE_PART * options.subprecision:
            problem.make_exact(i, space, segment)
        f.noise = precision * abs(f.divergence) + SMALLEST_GAIN
        if segment.single:
            KL = search(options, f, segment[0], gamma, &space.n_evaluations)
            if not KL.known:
                problem.make_exact(i, space, segment)
        if not segment.single:
            gamma[0], precision = start, 0.0
            f.noise = rounding * (1.0 + abs(f.cross - f.divergence) + abs(f.slope))
            KL = search(options, f, segment[0], gamma, &space.n_evaluations)
        KL.value = max(KL.value, 0.0)
        self.entropies_view[i] = f.cross - gamma[0] * f.slope - KL.value
        self.doubts_view[i] = precision * KL.value
        if segment.single and self.stored.single:
            self.doubts_view[i] += ROUNDING_OF_SINGLE * sqrt(KL.value)
        return KL

    cdef void trust_models(self, Problem problem, Py_ssize_t i, Segment segment, Objective f,
                           double gap, double gamma) noexcept nogil:
        """Keep the entropy of m that follows from a model, without logarithms of its tables.

        Where alpha is almost the vertex of the true labelling, as at the initial point, few
        logarithms say H(m) but for what is left of H(alpha). That adds between nothing and, in
        most cases, all of it: half of it may well be wrong, and so it counts TRUST times. Later
        KL(m || beta) is almost quadratic.
        """
        cdef Vertex truth
        cdef double left = (1.0 - gamma) * max(self.entropies_view[i], 0.0)
        cdef double doubt = gap * gamma * (1.0 - gamma)
        self.entropies_view[i] = f.cross - gamma * f.slope - gap * (1.0 - gamma) ** 2
        if self.visits_view[i] > 0:
            doubt *= min(1.0, SKEW * sqrt(gap))
        elif TRUST * left < doubt:
            truth = problem.labels.vertex(i)
            if is_near_vertex(segment, truth):
                doubt = TRUST * left
                self.entropies_view[i] = 0.5 * left + entropy_from_vertex(
                    segment, gamma, f.cross - f.slope, truth)
        self.doubts_view[i] += doubt

    cdef double step_on(self, Problem problem, Workspace space,
                        Py_ssize_t i) except -1.0 nogil:
        """Do one step on sample i and return gamma (paper, Algorithm 2)."""
        cdef double *w = &self.w_view[0]
        cdef double *m = &self.m_view[problem.attributes.slot_ptr[i]]
        cdef Py_ssize_t n_slots = problem.n_slots(i)
        cdef double lam_n = self.lam * problem.n_samples / (problem.weights[i] * self.coupling)
        cdef double log_z = 0.0, score = 0.0, norm2, gap, gamma, here = 0.0
        cdef Objective f
        cdef Segment segment
        cdef bint added

        if not self.sampler.compiled:
            problem.prefetch_weights(i, w)      # nobody has foreseen this sample
        problem.score_into(i, w, space.theta)
        space.ahead = ahead_of(m, n_slots * sizeof(double), self.stored.block(i),
                               problem.n_regions(i) * self.stored.storage().size)
        problem.expect_into(i, space.theta, space.m, &log_z, space)
        segment = problem.segment(i, space, self.stored.storage(), self.stored.block(i))
        kernels.subtract(m, space.m, space.theta, n_slots, &score, &f.slope)
        norm2 = problem.norm2(i, space.m)
        f.curvature, f.cross = norm2 / lam_n, log_z - score
        gap = f.divergence = f.cross - self.entropies_view[i]
        if not self.knows_gap(i, gap):
            gap = self.search_from(problem, space, i, &segment, f, 0, &here).value
        self.gaps_view[i] = gap * problem.weights[i]
        self.foresee(problem, space, i)

        gamma = self.first_gamma.get(gap, f.curvature, self.gammas_view[i])
        if (self.visits_view[i] + 1) % self.search_every and self.knows_gap(i, gap):
            if self.line_search.max_newton > 0:
                gamma = quadratic_start(gap, f.curvature)
            self.trust_models(problem, i, segment, f, gap, gamma)
        else:
            f.divergence = gap - self.doubts_view[i]    # it may be so small
            self.search_from(problem, space, i, &segment, f, self.line_search.max_newton,
                             &gamma)
        self.gammas_view[i] = gamma
        self.visits_view[i] += 1

        self.note_change(space, -gamma / lam_n, f.slope, norm2)
        # First the weights, while their rows are near, unless another thread is at them.
        added = self.add_to_weights(problem, i, -gamma / lam_n, space.m, w, False)
        self.prefetch_sample(problem, space)
        mix(segment, gamma)
        kernels.axpy(gamma, space.m, m, n_slots)
        if not added:
            self.add_to_weights(problem, i, -gamma / lam_n, space.m, w, True)
        self.prefetch_weights(problem, space)
        space.n_updates += 1
        space.n_oracle_calls += 1
        return gamma

    # All that a step reads is asked for before, a part at a time: a processor does not wait for
    # more than a dozen or two cache lines at once. First single numbers, and where the rest begins,
    # when the sample is drawn; attributes and graph before the step mixes its marginals; the
    # weights not before it has ended, because other threads go on changing them. The marginals,
    # which are most, come while the oracle works, see `Workspace.ahead`.

    cdef void prefetch(self, Problem problem, Py_ssize_t i) noexcept nogil:
        problem.prefetch_place(i)
        ask_for(&self.gaps_view[i])
        ask_for(&self.entropies_view[i])
        ask_for(&self.gammas_view[i])
        ask_for(&self.visits_view[i])
        ask_for(&self.doubts_view[i])

    cdef void prefetch_sample(self, Problem problem, Workspace space) noexcept nogil:
        if space.told and space.upcoming >= 0:
            problem.prefetch(space.upcoming)

    cdef void prefetch_weights(self, Problem problem, Workspace space) noexcept nogil:
        if space.told and space.upcoming >= 0:
            problem.prefetch_weights(space.upcoming, &self.w_view[0])

    def _count(self, Workspace space):
        """Take the counters of a workspace over."""
        super()._count(space)
        self.n_evaluations += space.n_evaluations
        space.n_evaluations = 0

    def arrays(self):
        """Return all arrays that the state consists of, {name: array}; not copies."""
        return {**super().arrays(), "alpha": self.alpha, "gammas": self.gammas,
                "visits": self.visits, "doubts": self.doubts}

    def counters(self):
        """Return all numbers that the state consists of, {name: number}."""
        return {**super().counters(), "n_evaluations": self.n_evaluations}

    def set_counters(self, n_evaluations, **others):
        """Take the numbers that `counters` returned."""
        super().set_counters(**others)
        self.n_evaluations = n_evaluations
