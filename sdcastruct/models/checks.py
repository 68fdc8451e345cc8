"""Checks of samples: every error names the argument, the sample and what was expected."""

import numpy as np
from scipy import sparse


def check_rows(X, n_features):
    """Check inputs of attribute rows and stack them.

    Parameters
    ----------
    X : list of arrays or sparse matrices of shape (T_i, n_features)
    n_features : int

    Returns
    -------
    rows : CSR matrix of shape (sum T_i, n_features), float64
    lengths : int64 array of shape (n,)
        The numbers of rows T_i.
    """
    if not hasattr(X, "__len__") or sparse.issparse(X):
        raise TypeError(f"X={X!r}: expected a list with one array per sample")
    if len(X) == 0:
        raise ValueError("X is empty: expected at least one sample")
    samples = [_rows_of_sample(i, x, n_features) for i, x in enumerate(X)]
    lengths = np.array([x.shape[0] for x in samples], dtype=np.int64)
    rows = _stack(samples)
    if not np.isfinite(rows.data).all():
        entry = np.flatnonzero(~np.isfinite(rows.data))[0]
        row = np.searchsorted(rows.indptr, entry, side="right") - 1
        sample = np.searchsorted(np.cumsum(lengths), row, side="right")
        value = rows.data[entry]
        raise ValueError(f"X[{sample}] contains {value}: expected finite numbers")
    return rows, lengths


def check_labels(Y, lengths, n_states):
    """Check labels against the lengths of their samples; return them end to end as int64."""
    if not hasattr(Y, "__len__"):
        raise TypeError(f"Y={Y!r}: expected a list of labellings")
    if len(Y) != lengths.size:
        raise ValueError(f"Y has {len(Y)} samples but X has {lengths.size}")
    labels = []
    for i, (y, length) in enumerate(zip(Y, lengths, strict=True)):
        y = _array(f"Y[{i}]", y, "expected one label per row")
        if y.ndim != 1 or y.size != length:
            found = f"{y.size} labels" if y.ndim == 1 else f"shape {y.shape}"
            raise ValueError(f"Y[{i}] has {found} but X[{i}] has {length} rows")
        if y.dtype.kind not in "iu":
            raise TypeError(f"Y[{i}] has dtype {y.dtype}, expected integers")
        if y.min() < 0 or y.max() >= n_states:
            t = np.flatnonzero((y < 0) | (y >= n_states))[0]
            raise ValueError(
                f"Y[{i}][{t}] is {y[t]}, expected a label from 0 to {n_states - 1} "
                f"(n_states={n_states})"
            )
        labels.append(y)
    return np.concatenate(labels).astype(np.int64)


def _array(name, values, expected):
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} is ragged: {expected}") from error


def _rows_of_sample(i, x, n_features):
    if not sparse.issparse(x):
        x = _array(f"X[{i}]", x, "expected rows of equal length")
    if x.dtype.kind not in "fiub":
        raise TypeError(f"X[{i}] has dtype {x.dtype}, expected real numbers")
    if x.ndim != 2:
        raise ValueError(f"X[{i}] has shape {x.shape}, expected (n_nodes, {n_features})")
    if x.shape[1] != n_features:
        raise ValueError(
            f"X[{i}] has {x.shape[1]} columns, expected {n_features} (n_features={n_features})"
        )
    if x.shape[0] == 0:
        raise ValueError(f"X[{i}] has no rows: expected at least one node")
    return _sparse_sample(i, x) if sparse.issparse(x) else x


def _sparse_sample(i, x):
    """Return a sample as a float64 CSR matrix with columns in range and without duplicates."""
    rows = sparse.csr_matrix(x, dtype=np.float64)
    try:
        rows.check_format(full_check=True)
    except ValueError as error:
        raise ValueError(f"X[{i}] is not a valid sparse matrix: {error}") from error
    if not rows.has_canonical_format:
        rows = rows.copy()  # the caller's matrix stays as it is
        rows.sum_duplicates()
    return rows


def _stack(samples):
    """Return dense and sparse samples below one another as a float64 CSR matrix."""
    if any(sparse.issparse(x) for x in samples):
        return sparse.vstack(
            [sparse.csr_matrix(x, dtype=np.float64) for x in samples], format="csr"
        )
    return sparse.csr_matrix(np.concatenate(samples, dtype=np.float64))
