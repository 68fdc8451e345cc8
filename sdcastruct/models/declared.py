"""Binding of models that say in Python what their slots and regions are, one input at a time."""

import numpy as np
from scipy import sparse

from sdcastruct.inference.callback import CallbackEngine
from sdcastruct.models.checks import check_count, check_labels, check_rows, check_samples
from sdcastruct.models.forest import pointers, positions
from sdcastruct.problem import Attributes, Problem, Regions, Template, Truth


def bind_declared(model, X, Y):
    """Pack samples of a model that implements the methods of `Model` for one input."""
    check_samples(X)
    X = list(X)
    attributes = _pack_attributes(model, X)
    n_slots = np.diff(attributes.slot_ptr)
    declared = [_check_regions(i, model.regions(x), n_slots[i]) for i, x in enumerate(X)]
    states = [_check_states(i, model.states(x)) for i, x in enumerate(X)]
    n_nodes = np.array([s.size for s in states], np.int64)
    n_regions = np.array([counting.size for counting, _ in declared], np.int64)
    engine = model.engine(X)
    if engine is None:
        engine = CallbackEngine(model, X, states, n_slots, n_regions)
    return Problem(
        attributes,
        _pack_regions(declared),
        engine,
        None if Y is None else _pack_truth(model, X, Y, states, n_nodes, declared),
    )


def _pack_attributes(model, X):
    """Return the attributes of all slots, template by template."""
    templates = model.templates()
    if not hasattr(templates, "items") or not all(np.shape(t) == (2,) for t in templates.values()):
        raise TypeError(
            f"templates() returned {templates!r}: expected {{name: (number of attributes, width)}}"
        )
    slots = [model.slots(x) for x in X]
    for i, found in enumerate(slots):
        if not hasattr(found, "items"):
            raise TypeError(
                f"slots(X[{i}]) is {type(found).__name__}: expected {{name: attributes}} with "
                f"names from {list(templates)}"
            )
        for name in set(found) - set(templates):
            raise ValueError(f"slots(X[{i}]) names {name!r}: expected one of {list(templates)}")
    packed, filled, weight_offset = [], np.zeros(len(X), np.int64), 0
    for name, (n_attributes, width) in templates.items():
        n_attributes = check_count(f"templates()[{name!r}][0]", n_attributes, 1)
        width = check_count(f"templates()[{name!r}][1]", width, 1)
        none = sparse.csr_matrix((0, n_attributes))
        rows, counts = check_rows(
            [found.get(name, none) for found in slots],
            n_attributes,
            f"slots(X[{{}}])[{name!r}]",
            columns=f"templates()[{name!r}][0]",
            row="slot",
            least=0,
        )
        offset = np.repeat(filled, counts) + positions(counts) * width
        packed.append(Template(rows, pointers(counts), offset, weight_offset, width))
        filled += counts * width
        weight_offset += n_attributes * width
    for i in np.flatnonzero(filled == 0):
        raise ValueError(f"slots(X[{i}]) is empty: expected at least one slot")
    return Attributes(pointers(filled), packed)


def _check_states(i, states):
    """Return the numbers of states of a sample as an int64 array."""
    states = np.asarray(states)
    if states.ndim != 1 or states.size == 0 or states.dtype.kind not in "iu":
        raise ValueError(
            f"states(X[{i}]) has shape {states.shape} of {states.dtype}: expected a vector of "
            "integers, one per node"
        )
    for v in np.flatnonzero(states < 1):
        raise ValueError(f"states(X[{i}])[{v}] is {states[v]}: expected at least one state")
    return states.astype(np.int64)


def _check_regions(i, regions, n_slots):
    """Return counting numbers and slot entries of a sample as arrays."""
    if not isinstance(regions, tuple | list) or len(regions) != 2:
        raise TypeError(
            f"regions(X[{i}]) is {type(regions).__name__}: expected a tuple (counting, slot)"
        )
    counting, slot = regions
    counting, slot = np.asarray(counting, np.float64), np.asarray(slot)
    if counting.ndim != 1 or counting.shape != slot.shape or counting.size == 0:
        raise ValueError(
            f"regions(X[{i}]) has shapes {counting.shape} and {slot.shape}: expected two vectors "
            "of the length of the marginals"
        )
    if slot.dtype.kind not in "iu":
        raise TypeError(f"regions(X[{i}])[1] has dtype {slot.dtype}, expected integers")
    for j in np.flatnonzero((slot < -1) | (slot >= n_slots)):
        raise ValueError(
            f"regions(X[{i}])[1][{j}] is {slot[j]}: expected an entry of theta from 0 to "
            f"{n_slots - 1}, or -1"
        )
    if not np.isfinite(counting).all():
        raise ValueError(f"regions(X[{i}])[0] is not finite")
    return counting, slot.astype(np.int64)


def _pack_regions(declared):
    run_lengths, run_counting, segments = [], [], []
    for counting, slot in declared:
        start = np.flatnonzero(np.diff(counting, prepend=np.nan))
        run_lengths.append(np.diff(np.append(start, counting.size)))
        run_counting.append(counting[start])
        segments.append(_segments(slot))
    return Regions(
        pointers([counting.size for counting, _ in declared]),
        pointers([r.size for r in run_lengths]),
        np.concatenate(run_lengths),
        np.concatenate(run_counting),
        pointers([len(s) for s in segments]),
        np.concatenate(segments),
    )


def _segments(slot):
    """Return the stretches of marginals that add to consecutive entries of theta."""
    start = np.flatnonzero(np.diff(slot, prepend=slot[0] - 2) != 1)
    length = np.diff(np.append(start, slot.size))
    segments = np.stack([start, slot[start], length, np.ones_like(start)], axis=1)
    # A marginal without a slot, -1, may seem to run into slot 0.
    loose = segments[:, 1] == -1
    segments[loose] += [1, 1, -1, 0]
    return segments[segments[:, 2] > 0]


def _pack_truth(model, X, Y, states, n_nodes, declared):
    labels = np.split(check_labels(Y, n_nodes, np.concatenate(states)), np.cumsum(n_nodes)[:-1])
    regions, slots = [], []
    for i, (x, y, (counting, slot)) in enumerate(zip(X, labels, declared, strict=True)):
        mu = np.asarray(model.truth(x, y))
        if mu.shape != counting.shape:
            raise ValueError(
                f"truth(X[{i}], Y[{i}]) has shape {mu.shape}, expected ({counting.size},)"
            )
        for j in np.flatnonzero(~np.isin(mu, (0, 1))):
            raise ValueError(f"truth(X[{i}], Y[{i}])[{j}] is {mu[j]}: expected 0 or 1")
        regions.append(np.flatnonzero(mu))
        slots.append(slot[regions[-1]][slot[regions[-1]] >= 0])
    return Truth(
        pointers([r.size for r in regions]),
        np.concatenate(regions),
        pointers([s.size for s in slots]),
        np.concatenate(slots),
    )
