"""Models: the graph of an input, its features and its inference, without data."""

from sdcastruct.models.base import Model
from sdcastruct.models.chain import ChainModel

__all__ = ["ChainModel", "Model"]
