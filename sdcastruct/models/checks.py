"""Checks of samples: every error names the argument, the sample and what was expected.

Models of one's own may use them too.
"""

from numbers import Integral

import numpy as np
from scipy import sparse

from sdcastruct.models.stacked import StackedRows


def check_count(name, value, least):
    """Check a parameter that counts something; return it as int."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(f"{name}={value!r}: expected an integer")
    if value < least:
        raise ValueError(f"{name}={value}: expected at least {least}")
    return int(value)


def check_samples(X):
    """Check that X is a list of at least one sample."""
    if not hasattr(X, "__len__") or sparse.issparse(X):
        raise TypeError(f"X={X!r}: expected a list with one item per sample")
    if len(X) == 0:
        raise ValueError("X is empty: expected at least one sample")


def check_rows(X, n_columns, name="X[{}]", columns="n_features", row="node", least=1):
    """Check inputs of attribute rows and stack them.

    Parameters
    ----------
    X : list of arrays or sparse matrices of shape (T_i, n_columns), or StackedRows
    n_columns : int
    name, columns, row : str
        What messages call the array of sample {}, its number of columns, and what a row stands for.
    least : int
        Smallest number of rows T_i.

    Returns
    -------
    rows : CSR matrix of shape (sum T_i, n_columns), float64
    lengths : int64 array of shape (n,)
        The numbers of rows T_i.
    """
    if isinstance(X, StackedRows):
        rows, lengths = X.rows, X.lengths
        _check_width("X", rows, n_columns, columns)
    else:
        samples = [
            _rows_of_sample(name.format(i), x, n_columns, columns, row) for i, x in enumerate(X)
        ]
        lengths = np.array([x.shape[0] for x in samples], dtype=np.int64)
        rows = _stack(samples, n_columns)
    for i in np.flatnonzero(lengths < least):
        raise ValueError(f"{name.format(i)} has no rows: expected at least one {row}")
    if not np.isfinite(rows.data).all():
        entry = np.flatnonzero(~np.isfinite(rows.data))[0]
        at = np.searchsorted(rows.indptr, entry, side="right") - 1
        sample = np.searchsorted(np.cumsum(lengths), at, side="right")
        value = rows.data[entry]
        raise ValueError(f"{name.format(sample)} contains {value}: expected finite numbers")
    return rows, lengths


def check_labels(Y, lengths, n_states):
    """Check labels against the samples; return them end to end as int64.

    Parameters
    ----------
    Y : list of int arrays
    lengths : int64 array of shape (n,)
        Number of nodes of each sample.
    n_states : int, or int array of shape (sum of lengths,)
        Number of states of every node.
    """
    if np.ndim(Y) == 0 if isinstance(Y, np.ndarray) else not hasattr(Y, "__len__"):
        raise TypeError(f"Y={Y!r}: expected a list of labellings")
    if len(Y) != lengths.size:
        raise ValueError(f"Y has {len(Y)} samples but X has {lengths.size}")
    limits = np.split(np.broadcast_to(n_states, lengths.sum()), np.cumsum(lengths)[:-1])
    labels = []
    for i, (y, length, limit) in enumerate(zip(Y, lengths, limits, strict=True)):
        y = as_array(f"Y[{i}]", y, "expected one label per node")
        if y.ndim != 1 or y.size != length:
            found = f"{y.size} labels" if y.ndim == 1 else f"shape {y.shape}"
            raise ValueError(f"Y[{i}] has {found} but X[{i}] has {length} nodes")
        if y.dtype.kind not in "iu":
            raise TypeError(f"Y[{i}] has dtype {y.dtype}, expected integers")
        wrong = np.flatnonzero((y < 0) | (y >= limit))
        if wrong.size:
            t = wrong[0]
            raise ValueError(
                f"Y[{i}][{t}] is {y[t]}, expected a label from 0 to {limit[t] - 1} "
                f"(n_states={limit[t]})"
            )
        labels.append(y)
    return np.concatenate(labels).astype(np.int64)


def check_nodes(name, nodes, order, n_nodes=None):
    """Check the nodes of cliques of one sample; return them as an int64 array of shape (m, order).

    Parameters
    ----------
    name : str
        What messages call the array.
    nodes : array of shape (m, order); an empty list means m = 0
    order : int
        Number of nodes of a clique; 2 for edges.
    n_nodes : int, optional
        Number of nodes of the sample.
    """
    nodes = as_array(name, nodes, f"expected rows of {order} nodes")
    if nodes.size == 0 and nodes.shape in ((0,), (0, order)):
        return np.empty((0, order), np.int64)
    if nodes.ndim != 2 or nodes.shape[1] != order:
        kind = "edges" if order == 2 else "cliques"
        raise ValueError(f"{name} has shape {nodes.shape}, expected (number of {kind}, {order})")
    if nodes.dtype.kind not in "iu":
        raise TypeError(f"{name} has dtype {nodes.dtype}, expected integers")
    nodes = nodes.astype(np.int64)
    last = np.inf if n_nodes is None else n_nodes - 1
    wrong = np.argwhere((nodes < 0) | (nodes > last))
    if wrong.size:
        e, s = wrong[0]
        known = "a node >= 0" if n_nodes is None else f"a node from 0 to {last}"
        raise ValueError(
            f"{name}[{e}] = {nodes[e].tolist()} has node {nodes[e, s]}: expected {known}"
        )
    seen = {}
    for e, clique in enumerate(nodes.tolist()):
        scope = frozenset(clique)
        if len(scope) < order:
            raise ValueError(f"{name}[{e}] = {clique} joins a node to itself")
        if scope in seen:
            earlier = seen[scope]
            raise ValueError(
                f"{name}[{e}] = {clique} duplicates {name}[{earlier}] = {nodes[earlier].tolist()}"
            )
        seen[scope] = e
    return nodes


def as_array(name, values, expected):
    """Return values as an array; ragged lists get a clear error."""
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} is ragged: {expected}") from error


def _rows_of_sample(name, x, n_columns, columns, row):
    if not sparse.issparse(x):
        x = as_array(name, x, "expected rows of equal length")
    if x.dtype.kind not in "fiub":
        raise TypeError(f"{name} has dtype {x.dtype}, expected real numbers")
    if x.ndim != 2:
        raise ValueError(f"{name} has shape {x.shape}, expected (n_{row}s, {n_columns})")
    _check_width(name, x, n_columns, columns)
    return _sparse_sample(name, x) if sparse.issparse(x) else x


def _check_width(name, x, n_columns, columns):
    if x.shape[1] != n_columns:
        raise ValueError(
            f"{name} has {x.shape[1]} columns, expected {n_columns} ({columns}={n_columns})"
        )


def _sparse_sample(name, x):
    """Return a sample as a float64 CSR matrix with columns in range and without duplicates."""
    rows = sparse.csr_matrix(x, dtype=np.float64)
    try:
        rows.check_format(full_check=True)
    except ValueError as error:
        raise ValueError(f"{name} is not a valid sparse matrix: {error}") from error
    if not rows.has_canonical_format:
        rows = rows.copy()  # the caller's matrix stays as it is
        rows.sum_duplicates()
    return rows


def _stack(samples, n_columns):
    """Return dense and sparse samples below one another as a float64 CSR matrix."""
    if any(sparse.issparse(x) for x in samples):
        return sparse.vstack(
            [sparse.csr_matrix(x, dtype=np.float64) for x in samples], format="csr"
        )
    empty = np.empty((0, n_columns))
    return sparse.csr_matrix(np.concatenate([empty, *samples], dtype=np.float64))
