"""Files from which a run goes on as if nothing had happened.

A checkpoint is an `archive`: the arrays of the state, what the sampler has learned, the history so
far, and a header with the counters, the random numbers and what the state belongs to. A run that is
killed while it writes leaves the previous checkpoint intact.
"""

import numpy as np

from sdcastruct import archive

VERSION = 3


def save(path, state, history):
    """Write a checkpoint.

    Parameters
    ----------
    path : str or Path
    state : State
    history : dict
        Arrays of the history so far.
    """
    header = {
        **_identity(state),
        "counters": state.counters(),
        "random": _plain(state.stream.generator.bit_generator.state),
    }
    parts = {"state": state.arrays(), "sampler": state.sampler.memory(), "history": history}
    arrays = {f"{part}/{name}": a for part, named in parts.items() for name, a in named.items()}
    archive.write(path, "checkpoint", VERSION, header, arrays)


def load(path, state):
    """Bring a fresh state to where a checkpoint stands; return the history.

    Raises
    ------
    ValueError
        If the file is no checkpoint, or one of another run: it says what differs.
    """
    header, arrays = archive.read(path, "checkpoint", VERSION)
    for name, value in _identity(state).items():
        if header.get(name) != value:
            raise ValueError(
                f"checkpoint {str(path)!r} belongs to another run: its {name} is "
                f"{header.get(name)!r}, expected {value!r}"
            )
    try:
        for name, target in state.arrays().items():
            target[...] = arrays[f"state/{name}"]
        state.set_counters(**header["counters"])
        state.sampler.remember(_part(arrays, "sampler"))
        state.stream.generator.bit_generator.state = _restored(header["random"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"checkpoint {str(path)!r} does not fit this run: {error}") from error
    return _part(arrays, "history")


def _identity(state):
    """Return what a checkpoint belongs to; the random numbers are part of the state."""
    options = {k: repr(v) for k, v in vars(state.solver).items() if k != "random_state"}
    return {
        "solver": type(state.solver).__name__,
        "options": options,
        "lam": state.lam,
        "problem": state.problem.fingerprint(),
    }


def _part(arrays, part):
    prefix = f"{part}/"
    return {k.removeprefix(prefix): a for k, a in arrays.items() if k.startswith(prefix)}


def _plain(value):
    """Return the state of a bit generator in terms of JSON."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, np.ndarray):
        return {"array": value.tolist(), "dtype": str(value.dtype)}
    return value.item() if isinstance(value, np.generic) else value


def _restored(value):
    if isinstance(value, dict):
        if set(value) == {"array", "dtype"}:
            return np.array(value["array"], value["dtype"])
        return {name: _restored(part) for name, part in value.items()}
    return value
