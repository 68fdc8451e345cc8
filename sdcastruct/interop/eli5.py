"""Explanations by eli5: importing this module lets ``eli5.explain_weights`` take a `CRF`.

eli5 dispatches on the class of an estimator and knows only what was registered with it. Our `CRF`
has the attributes that its explanation of ``sklearn_crfsuite.CRF`` reads, so that one serves for
both; eli5 has it only where sklearn-crfsuite is installed.
"""

from eli5 import explain_weights

from sdcastruct.crf import CRF

try:
    from eli5.sklearn_crfsuite import explain_weights_sklearn_crfsuite
except ImportError as error:
    raise ImportError(
        "sdcastruct.interop.eli5 needs sklearn-crfsuite, as eli5's explanation of CRFs does: "
        "pip install sklearn-crfsuite"
    ) from error

explain_weights.register(CRF)(explain_weights_sklearn_crfsuite)
