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
POTENTIALS = ("_get_unary_potentials", "_get_pairwise_potentials", "_get_edges", "joint_feature")


def wrap(model):
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

    Examples
    --------
    >>> from pystruct.models import ChainCRF  # doctest: +SKIP
    >>> model = wrap(ChainCRF(n_states=26, n_features=128))  # doctest: +SKIP
    >>> result = SDCA().solve(model.bind(X, Y))  # doctest: +SKIP
    """
    if isinstance(model, Model):
        return model
    known = _known(model)
    if known is not None:
        return known(model)
    if all(hasattr(model, name) for name in POTENTIALS):
        return PotentialModel(model)
    if hasattr(model, "joint_feature") and hasattr(model, "n_states"):
        return EnumeratedModel(model)
    raise TypeError(
        f"model={model!r}: expected a model with {', '.join(POTENTIALS)}, or with joint_feature "
        "and n_states"
    )


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
