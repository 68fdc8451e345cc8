"""A problem: a model bound to n samples, all that a solver sees.

Five operations, in the letters of the paper. Only `infer` depends on the graph::

    score(i, w) -> theta          slot scores w^T F_C
    infer(i, theta) -> mu, log_z  the marginal oracle
    gather(i, mu) -> m            region tables summed into slots
    norm2(i, m)                   ||E_m[F]||^2, the squared norm of the expected features
    add(i, scale, m, w)           w += scale E_m[F], which touches only the sample's support

Methods named ``*_into`` are the C interface: they write into the caller's memory and need no GIL.
The Python methods return arrays and are meant for reading, testing and prototyping.

The C interface and the passes in `batch` know weights as they are packed: tables with a row per
attribute. A model that lays its weights out in another order says so in `order`, and `pack` and
`unpack` translate; solvers do that at their ends.
"""

import hashlib

import numpy as np

from libc.math cimport isfinite

from sdcastruct.simd.ahead cimport ask, ask_for, share_out
from sdcastruct.simd.kernels cimport kernels


cdef class Problem:
    """Samples packed into flat arrays; made by `Model.bind`.

    Attributes
    ----------
    n_samples : int
    dim : int
        Number of weights.
    n_marginals : int
        Length of a dual point: the region marginals of all samples laid end to end.
    labelled : bool
        Whether the samples have labels; without them the problem serves for prediction only.

    Parameters
    ----------
    attributes : Attributes
    regions : Regions
    engine : Engine
    truth : Truth, optional
        The true labellings.
    weights : array of shape (n_samples,), optional
        How many times the objective counts the loss of each sample; by default once.
    order : int array of shape (dim,), optional
        Where each packed weight stands in the model's w; by default at the same place.
    """

    def __init__(self, Attributes attributes, Regions regions, Engine engine, Truth truth=None,
                 weights=None, order=None):
        self.attributes, self.regions, self.engine = attributes, regions, engine
        engine.scratch_size = max(engine.scratch_size, 1)
        self.n_samples = attributes.n_samples
        self.dim = attributes.dim
        self.n_marginals = regions.region_ptr[regions.n_samples]
        self.labelled = truth is not None
        self.labels = truth
        self.weights = _weights(weights, self.n_samples)
        self.order = order

    cdef int score_into(self, Py_ssize_t i, const double *w, double *theta) except -1 nogil:
        return self.attributes.score(i, w, theta)

    cdef void prefetch_place(self, Py_ssize_t i) noexcept nogil:
        """Ask for where what is known of sample i begins."""
        self.attributes.prefetch_place(i)
        self.engine.prefetch_place(i)
        ask_for(&self.weights[i])
        ask_for(&self.regions.region_ptr[i])
        ask_for(&self.regions.run_ptr[i])

    cdef void prefetch(self, Py_ssize_t i) noexcept nogil:
        """Ask for what is known of sample i."""
        self.attributes.prefetch(i)
        self.engine.prefetch(i)

    cdef void prefetch_weights(self, Py_ssize_t i, const double *w) noexcept nogil:
        self.attributes.prefetch_weights(i, w)

    cdef int infer_into(self, Py_ssize_t i, const double *theta, double *mu, double *log_z,
                        double *scratch) except -1 nogil:
        return self.engine.infer(i, theta, mu, log_z, scratch)

    cdef int log_partition_into(self, Py_ssize_t i, const double *theta, double *log_z,
                                Workspace space) except -1 nogil:
        return self.engine.log_partition(i, theta, space.beta, log_z, space.scratch)

    cdef int expect_into(self, Py_ssize_t i, const double *theta, double *m, double *log_z,
                         Workspace space) except -1 nogil:
        """Write slot marginals and log Z; `segment` knows the region marginals then."""
        if self.engine.factors:
            space.factored = self.engine.expect(i, theta, m, space.beta, log_z, space.scratch,
                                                &space.ahead)
        else:
            share_out(&space.ahead, 2)
            ask(&space.ahead)
            self.infer_into(i, theta, space.beta, log_z, space.scratch)
            ask(&space.ahead)
            self.gather_into(i, space.beta, m)
            space.factored = False
        return 0

    cdef Segment segment(self, Py_ssize_t i, Workspace space, const Storage *storage,
                         void *alpha) noexcept nogil:
        """Return the segment from alpha to the region marginals of the last `expect_into`.

        It is in single precision until `make_exact`.
        """
        cdef Py_ssize_t n_written = self.n_regions(i), n_products = 0, p
        if space.factored:
            n_products = self.engine.products(i, space.scratch, storage, space.products)
            for p in range(n_products):
                n_written -= space.products[p].k * space.products[p].k
        return Segment(storage, self.runs(i), alpha, space.beta, n_written, n_products,
                       space.products, True)

    cdef void make_exact(self, Py_ssize_t i, Workspace space, Segment *segment) noexcept nogil:
        """Write out all products of the segment, for double precision."""
        if space.factored:
            self.engine.complete(i, space.beta, space.scratch)
            space.factored = False
        segment.n_products, segment.n_written = 0, self.n_regions(i)
        segment.single = False

    cdef int decode_into(self, Py_ssize_t i, const double *theta, int64_t *y,
                         double *scratch) except -1 nogil:
        cdef double low, high
        kernels.range(theta, self.n_slots(i), &low, &high)
        if not (isfinite(low) and isfinite(high)):
            with gil:
                raise ValueError(f"the scores of sample {i} are not finite: weights or features "
                                 "are too large")
        return self.engine.decode(i, theta, y, scratch)

    cdef void gather_into(self, Py_ssize_t i, const double *mu, double *m) noexcept nogil:
        self.regions.gather(i, mu, m, self.n_slots(i))

    cdef double norm2(self, Py_ssize_t i, const double *m) except -1.0 nogil:
        return self.attributes.norm2(i, m)

    cdef int add(self, Py_ssize_t i, double scale, const double *m, double *w) except -1 nogil:
        return self.attributes.add(i, scale, m, w)

    cdef Runs runs(self, Py_ssize_t i) noexcept nogil:
        return self.regions.runs(i)

    cdef Py_ssize_t n_regions(self, Py_ssize_t i) noexcept nogil:
        return self.regions.region_ptr[i + 1] - self.regions.region_ptr[i]

    cdef Py_ssize_t n_slots(self, Py_ssize_t i) noexcept nogil:
        return self.attributes.slot_ptr[i + 1] - self.attributes.slot_ptr[i]

    cdef double truth_score(self, Py_ssize_t i, const double *theta) noexcept nogil:
        """Return <theta, m> for the true labelling of sample i."""
        cdef double total = 0.0
        cdef Py_ssize_t e
        for e in range(self.labels.slot_ptr[i], self.labels.slot_ptr[i + 1]):
            total += theta[self.labels.slot[e]]
        return total

    cdef void add_truth(self, Py_ssize_t i, double scale, double *m) noexcept nogil:
        """Add scale times the slot marginals of the true labelling of sample i to m."""
        cdef Py_ssize_t e
        for e in range(self.labels.slot_ptr[i], self.labels.slot_ptr[i + 1]):
            m[self.labels.slot[e]] += scale

    cdef int check_index(self, Py_ssize_t i) except -1:
        if not 0 <= i < self.n_samples:
            raise IndexError(f"sample {i}: expected an index from 0 to {self.n_samples - 1}")
        return 0

    cdef int check_labelled(self) except -1:
        if not self.labelled:
            raise ValueError("this problem was bound without labels Y")
        return 0

    def weighted(self, weights):
        """Return this problem with other weights of the samples; everything else is shared.

        The objective is then lam/2 ||w||^2 - 1/n sum_i weights_i log p(y_i | x_i; w).

        Parameters
        ----------
        weights : array of shape (n_samples,)
            Numbers > 0.
        """
        return Problem(self.attributes, self.regions, self.engine, self.labels, weights, self.order)

    def with_attributes(self, attributes):
        """Return this problem with other attributes; everything else is shared."""
        return Problem(attributes, self.regions, self.engine, self.labels, self.weights, self.order)

    def ordered(self, order):
        """Return this problem for a model that lays its weights out in another order."""
        return Problem(self.attributes, self.regions, self.engine, self.labels, self.weights, order)

    def workspace(self):
        """Return memory for steps on any sample; every thread needs its own."""
        return Workspace(self.attributes, self.regions, self.engine)

    def pack(self, w):
        """Return weights in the order of the model as they are packed."""
        return w if self.order is None else np.asarray(w)[self.order]

    def unpack(self, w):
        """Return packed weights in the order of the model, a copy."""
        if self.order is None:
            return np.array(w)
        out = np.empty_like(w)
        out[self.order] = w
        return out

    def block(self, Py_ssize_t i):
        """Return the slice of a dual point that holds the marginals of sample i."""
        self.check_index(i)
        return slice(self.regions.region_ptr[i], self.regions.region_ptr[i + 1])

    @property
    def region_ptr(self):
        """Offsets of the samples' marginals in a dual point, shape (n_samples + 1,)."""
        return np.asarray(self.regions.region_ptr)

    @property
    def n_slot_marginals(self):
        """Length of the slot marginals of all samples laid end to end."""
        return self.attributes.slot_ptr[self.n_samples]

    def counting(self, Py_ssize_t i):
        """Return the counting number of every entry of the marginals of sample i."""
        self.check_index(i)
        return self.regions.counting(i)

    def begins_with(self, Problem other):
        """Return whether the first samples have the graphs and slots of those of another problem.

        Then the dual points of the other are dual points of these samples. Engines that do not
        tell their graphs apart have the same ones only if they are the same.
        """
        cdef Py_ssize_t n = other.n_samples
        if self is other:
            return True
        return (n <= self.n_samples
                and np.array_equal(self.regions.region_ptr[:n + 1], other.regions.region_ptr)
                and np.array_equal(self.attributes.slot_ptr[:n + 1], other.attributes.slot_ptr)
                and all(self.regions.layout(i) == other.regions.layout(i)
                        and (self.engine is other.engine
                             or self.engine.graph(i) == other.engine.graph(i) != b"")
                        for i in range(n)))

    def knows_graphs(self):
        """Return whether the engine can tell graphs apart."""
        return self.engine.graph(0) != b""

    def fingerprint(self):
        """Return a hexadecimal number that tells problems apart: graphs, attributes and labels."""
        digest = hashlib.sha256()
        for i in range(self.n_samples):
            digest.update(self.regions.layout(i))
            digest.update(self.engine.graph(i))
        self.attributes.add_to(digest)
        if self.labelled:
            self.labels.add_to(digest)
        digest.update(np.asarray(self.weights).tobytes())
        if self.order is not None:
            digest.update(np.asarray(self.order, np.int64).tobytes())
        return digest.hexdigest()

    def score(self, Py_ssize_t i, w):
        """Return the slot scores theta of sample i at weights w."""
        self.check_index(i)
        cdef const double[::1] weights = self.pack(_vector("w", w, self.dim))
        theta = np.empty(self.n_slots(i))
        cdef double[::1] view = theta
        self.score_into(i, &weights[0], &view[0])
        return theta

    def infer(self, Py_ssize_t i, theta):
        """Return the region marginals mu and the log-partition function at scores theta."""
        self.check_index(i)
        cdef const double[::1] scores = _vector("theta", theta, self.n_slots(i))
        mu = np.empty(self.n_regions(i))
        cdef double[::1] view = mu
        cdef double[::1] scratch = np.empty(self.engine.scratch_size)
        cdef double log_z = 0.0
        self.infer_into(i, &scores[0], &view[0], &log_z, &scratch[0])
        return mu, log_z

    def expect(self, Py_ssize_t i, theta):
        """Return the slot marginals m and the log-partition function at scores theta."""
        self.check_index(i)
        cdef const double[::1] scores = _vector("theta", theta, self.n_slots(i))
        m = np.empty(self.n_slots(i))
        cdef double[::1] view = m
        cdef double log_z = 0.0
        self.expect_into(i, &scores[0], &view[0], &log_z, self.workspace())
        return m, log_z

    def calibrate(self, Py_ssize_t i, mu):
        """Return region marginals that are consistent, from some that rounding has made not quite.

        They are those of the distribution whose conditional distributions, down from the roots of
        the junction tree, are those of `mu`.
        """
        self.check_index(i)
        mu = _vector("mu", mu, self.n_regions(i)).copy()
        cdef double[::1] view = mu
        cdef double[::1] scratch = np.empty(self.engine.scratch_size)
        self.engine.calibrate(i, &view[0], &scratch[0])
        return mu

    def n_nodes(self, Py_ssize_t i):
        """Return the number of nodes of sample i."""
        self.check_index(i)
        return self.engine.n_nodes(i)

    def decode(self, Py_ssize_t i, theta):
        """Return a labelling of sample i with the highest score."""
        self.check_index(i)
        cdef const double[::1] scores = _vector("theta", theta, self.n_slots(i))
        y = np.empty(self.engine.n_nodes(i), np.int64)
        cdef int64_t[::1] view = y
        cdef double[::1] scratch = np.empty(self.engine.scratch_size)
        self.decode_into(i, &scores[0], &view[0], &scratch[0])
        return y

    def gather(self, Py_ssize_t i, mu):
        """Return the slot marginals m of the region marginals mu."""
        self.check_index(i)
        cdef const double[::1] marginals = _vector("mu", mu, self.n_regions(i))
        m = np.empty(self.n_slots(i))
        cdef double[::1] view = m
        self.gather_into(i, &marginals[0], &view[0])
        return m

    def features(self, Py_ssize_t i, m):
        """Return the expected features of slot marginals m, a dense vector of shape (dim,)."""
        self.check_index(i)
        cdef const double[::1] slots = _vector("m", m, self.n_slots(i))
        features = np.zeros(self.dim)
        cdef double[::1] view = features
        self.add(i, 1.0, &slots[0], &view[0])
        return self.unpack(features)

    def features_norm2(self, Py_ssize_t i, m):
        """Return the squared norm of the expected features of slot marginals m."""
        self.check_index(i)
        self.attributes.prepare_norms()
        cdef const double[::1] slots = _vector("m", m, self.n_slots(i))
        return self.norm2(i, &slots[0])

    def truth(self, Py_ssize_t i):
        """Return the region marginals of the true labelling of sample i: zeros and ones."""
        self.check_index(i)
        self.check_labelled()
        mu = np.zeros(self.n_regions(i))
        cdef Truth labels = self.labels
        mu[labels.region[labels.region_ptr[i]:labels.region_ptr[i + 1]]] = 1.0
        return mu

    def true_slots(self):
        """Return 1 where a true label stands among the scores of all samples, 0 elsewhere."""
        self.check_labelled()
        cdef Truth labels = self.labels
        ones = np.zeros(self.n_slot_marginals)
        owner = np.repeat(self.attributes.slot_ptr[:self.n_samples], np.diff(labels.slot_ptr))
        ones[owner + labels.slot] = 1.0
        return ones

    def radii(self):
        """Return upper bounds of R_i = max_y ||F(x_i, y_i) - F(x_i, y)||^2, times the weights.

        With attributes >= 0 no two feature vectors have a negative product, so that
        R_i <= ||F(x_i, y_i)||^2 + max_y ||F(x_i, y)||^2, with equality when some label does not
        occur in y_i (paper, Appendix C). Otherwise the triangle inequality takes its place.
        """
        self.check_labelled()
        self.attributes.prepare_norms()
        truth = np.empty(self.n_samples)
        cdef double[::1] view = truth, m = np.zeros(self.attributes.max_slots)
        cdef Py_ssize_t i
        with nogil:
            for i in range(self.n_samples):
                self.add_truth(i, 1.0, &m[0])
                view[i] = self.norm2(i, &m[0])
                self.add_truth(i, -1.0, &m[0])
        slot_ptr = np.asarray(self.attributes.slot_ptr)
        largest, negative = self.attributes.largest_norms2(self.regions.tables_per_slot(slot_ptr))
        radii = truth + largest + np.where(negative, 2.0 * np.sqrt(truth * largest), 0.0)
        return radii * self.weights


def _weights(weights, Py_ssize_t n_samples):
    """Return weights of samples as a vector, or say what is wrong."""
    if weights is None:
        return np.ones(n_samples)
    vector = _vector("weights", weights, n_samples)
    for i in np.flatnonzero(~((vector > 0.0) & np.isfinite(vector))):
        raise ValueError(f"weights[{i}] is {vector[i]}: expected a finite number > 0")
    return vector.copy()


def _vector(name, values, Py_ssize_t length):
    """Return values as a contiguous float64 vector of the given length, or say what is wrong."""
    vector = np.ascontiguousarray(values, dtype=np.float64)
    if vector.shape != (length,):
        raise ValueError(f"{name} has shape {vector.shape}, expected ({length},)")
    return vector
