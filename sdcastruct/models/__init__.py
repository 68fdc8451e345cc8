"""Models: the graph of an input, its features and its inference, without data."""

from sdcastruct.models.base import Model
from sdcastruct.models.chain import ChainModel
from sdcastruct.models.clique import Clique
from sdcastruct.models.graph import GraphModel
from sdcastruct.models.layout import JunctionTree
from sdcastruct.models.multiclass import MulticlassModel
from sdcastruct.models.pairwise import PairwiseModel
from sdcastruct.models.tree import TreeModel

__all__ = [
    "ChainModel",
    "Clique",
    "GraphModel",
    "JunctionTree",
    "Model",
    "MulticlassModel",
    "PairwiseModel",
    "TreeModel",
]
