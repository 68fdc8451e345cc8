"""Files of arrays with a header in JSON: nothing pickled, versioned, written in one step.

A file is a ``.zip`` of NumPy arrays, whose checksums are verified on reading. It is written next to
its place and then moved there, so that a crash leaves what was there before.
"""

import contextlib
import json
import os
from pathlib import Path

import numpy as np


def write(path, kind, version, header, arrays, compress=False):
    """Write a file of this kind.

    Parameters
    ----------
    path : str or Path
    kind : str
        What the file is, such as "model".
    version : int
    header : dict
        Anything in terms of JSON.
    arrays : dict
        Arrays by name.
    compress : bool
    """
    header = {"format": f"sdcastruct {kind}", "version": version, **header}
    save = np.savez_compressed if compress else np.savez
    with replacing(path) as file:
        save(file, header=np.array(json.dumps(header)), **arrays)


@contextlib.contextmanager
def replacing(path):
    """Open a file next to a path to write bytes to; at the end it takes its place."""
    path = Path(path)
    unfinished = path.with_name(path.name + ".part")
    with open(unfinished, "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, path)


def read(path, kind, version):
    """Return header and arrays of a file; one of another kind is a ValueError that names it."""
    try:
        with open(path, "rb") as stream:
            if stream.read(2) != b"PK":
                raise ValueError("it is not a .zip archive")
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        if "header" not in arrays:
            raise ValueError("it has no header")
        header = json.loads(str(arrays.pop("header")))
        if header["format"] != f"sdcastruct {kind}":
            raise ValueError(f"its format is {header['format']!r}")
    except FileNotFoundError:
        raise
    except Exception as error:  # damaged archives raise a dozen kinds
        raise ValueError(f"{str(path)!r} is no readable {kind}: {error}") from error
    if header["version"] != version:
        raise ValueError(
            f"{kind} {str(path)!r} has version {header['version']}, expected {version}"
        )
    return header, arrays
