"""Which wrapper a pystruct model gets."""

from sdcastruct.interop.pystruct.any_model import EnumeratedModel, PotentialModel
from sdcastruct.interop.pystruct.known_models import (
    Binary,
    Chain,
    EdgeFeatureGraph,
    Graph,
    MultiClass,
    MultiLabel,
)
from sdcastruct.models import Model

KNOWN = {
    "ChainCRF": Chain,
    "GraphCRF": Graph,
    "GridCRF": Graph,
    "EdgeFeatureGraphCRF": EdgeFeatureGraph,
    "DirectionalGridCRF": EdgeFeatureGraph,
    "MultiLabelClf": MultiLabel,
    "MultiClassClf": MultiClass,
    "BinaryClf": Binary,
}
LABELS = ("n_states", "joint_feature")
POTENTIALS = ("_get_unary_potentials", "_get_pairwise_potentials", "_get_edges")


def wrap(model, max_table_bytes=2**30):
    """Return a `Model` that binds the inputs of a pystruct model, with its layout of the weights.

    The classes of pystruct, and subclasses that leave their feature maps alone, are packed into
    compiled problems. Any other model with pystruct's interface takes part through its own methods:
    ``_get_unary_potentials``, ``_get_pairwise_potentials`` and ``_get_edges`` give scores, and
    ``joint_feature`` of marginals gives expected features; a model without edges and with scalar
    labels from 0 to ``n_states - 1`` is asked for the ``joint_feature`` of every label. Marginals
    are always ours, and exact: graphs with loops get a junction tree.

    Parameters
    ----------
    model : pystruct model, or anything with its interface
        One of our own models is returned as it is.
    max_table_bytes : int, default 2**30
        Largest size of the clique tables of one sample together, for graphs with loops; see
        `GraphModel`.

    Examples
    --------
    >>> from pystruct.models import ChainCRF  # doctest: +SKIP
    >>> model = wrap(ChainCRF(n_states=26, n_features=128))  # doctest: +SKIP
    >>> result = SDCA().solve(model.bind(X, Y))  # doctest: +SKIP
    """
    if isinstance(model, Model):
        return model
    found = model.__name__ if isinstance(model, type) else type(model).__name__
    if isinstance(model, type) or not all(hasattr(model, name) for name in LABELS):
        raise TypeError(
            f"model is {found!r}: expected a model of pystruct's interface, an object with "
            f"{', '.join(LABELS)}, and if it has edges with {', '.join(POTENTIALS)}"
        )
    if hasattr(model, "latent"):
        raise TypeError(f"model is {found!r}: models with latent variables are not supported")
    if getattr(model, "rescale_C", False):
        raise ValueError(
            f"rescale_C=True: the features of {found} depend on the true label, expected "
            "rescale_C=False (Problem.weighted gives weights to samples)"
        )
    known = _known(model)
    if known is not None:
        return known(model, max_table_bytes)
    if all(hasattr(model, name) for name in POTENTIALS):
        return PotentialModel(model, max_table_bytes)
    return EnumeratedModel(model)


def _known(model):
    """Return the wrapper of a class of pystruct whose feature map is untouched, or None."""
    for parent in type(model).__mro__:
        if parent.__module__.startswith("pystruct.models.") and parent.__name__ in KNOWN:
            known = KNOWN[parent.__name__]
            untouched = all(
                getattr(type(model), name) is getattr(parent, name) for name in known.untouched
            )
            return known if untouched and known.supports(model) else None
    return None
