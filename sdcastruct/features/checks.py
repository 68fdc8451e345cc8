"""Checks of sequences: every error names the argument and what was expected."""

from collections.abc import Mapping

from sdcastruct.models.stacked import StackedRows


def check_sequences(name, sequences):
    """Return a list of sequences, or say what is wrong."""
    if isinstance(sequences, str | Mapping) or not hasattr(sequences, "__len__"):
        raise TypeError(f"{name} is {type(sequences).__name__}: expected a list of sequences")
    if len(sequences) == 0:
        raise ValueError(f"{name} is empty: expected at least one sequence")
    return sequences if isinstance(sequences, StackedRows) else list(sequences)
