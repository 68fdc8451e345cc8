"""Trained estimators as files: one file, nothing pickled, with a version and checksums.

A model is a ``.zip`` of NumPy arrays, whose checksums are verified on reading, and a header in JSON
with the labels, the parameters, the certificate and what the command line needs to read data.
Weights are stored without zeros; pruning makes more of them.
"""

import json
import os
from pathlib import Path

import numpy as np
from scipy import sparse

FORMAT, VERSION = "sdcastruct model", 1


def save(path, header, arrays):
    """Write a header and arrays, in one step: a crash leaves what was there before."""
    path = Path(path)
    unfinished = path.with_name(path.name + ".part")
    header = {"format": FORMAT, "version": VERSION, **header}
    with open(unfinished, "wb") as file:
        np.savez_compressed(file, header=np.array(json.dumps(header)), **arrays)
    os.replace(unfinished, path)


def load(path):
    """Return header and arrays of a model; a file that is none is a ValueError that names it."""
    try:
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        header = json.loads(str(arrays.pop("header")))
        if header["format"] != FORMAT:
            raise ValueError(f"its format is {header['format']!r}")
    except FileNotFoundError:
        raise
    except Exception as error:  # damaged archives raise a dozen kinds
        raise ValueError(f"{str(path)!r} is no readable model: {error}") from error
    if header["version"] != VERSION:
        raise ValueError(f"model {str(path)!r} has version {header['version']}, expected {VERSION}")
    return header, arrays


def pack_table(table, prune):
    """Return a table without the entries that are at most `prune` in size, as arrays of a CSR."""
    rows = sparse.csr_matrix(np.where(np.abs(table) > prune, table, 0.0))
    return {"data": rows.data, "indices": rows.indices.astype(np.int32), "indptr": rows.indptr}


def unpack_table(parts, shape):
    """Return the table that `pack_table` packed."""
    return sparse.csr_matrix((parts["data"], parts["indices"], parts["indptr"]), shape).toarray()
