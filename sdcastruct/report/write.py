"""The report of a fit: one HTML file that needs nothing but itself.

It says in words what the certificate proves, and shows how training went, what was learned, how
good the labels are that it predicts, and which training sequences look mislabelled.
"""

import datetime
import os
from functools import partial
from importlib.resources import files
from pathlib import Path

from sklearn.utils.validation import check_is_fitted

import sdcastruct
from sdcastruct import archive
from sdcastruct.crf import CRF
from sdcastruct.report.certificate import certificate
from sdcastruct.report.learned import attributes, model, training, transitions
from sdcastruct.report.page import contents, document, section, tag
from sdcastruct.report.scores import scores
from sdcastruct.report.suspects import block_gaps, suspects


def write_report(
    path,
    crf,
    X=None,
    y=None,
    X_test=None,
    y_test=None,
    tokens=None,
    title="Report of a fit",
):
    """Write what is known of a trained estimator to an HTML file.

    An estimator from `CRF.load` does not know its history; the report leaves that out.

    Parameters
    ----------
    path : str or Path
    crf : CRF
        A fitted estimator.
    X, y : lists, optional
        The training sequences, to show those whose labels look wrong.
    X_test, y_test : lists, optional
        Other sequences, to score the predicted labels.
    tokens : list of lists of str, optional
        What to call the positions of `X`, such as words. By default the first attribute of an item
        that tells it from others of the sequence; for arrays the number of the position.
    title : str
    """
    path = _check_path(path)
    if not isinstance(crf, CRF):
        raise TypeError(f"crf={crf!r}: expected a CRF")
    check_is_fitted(crf, "coef_")
    _check_pair("X", X, "y", y)
    _check_pair("X_test", X_test, "y_test", y_test)
    _check_training(crf, X, tokens)
    gaps = block_gaps(crf, X, y)
    sections = {
        "Scores": X_test is not None and partial(scores, crf, X_test, y_test),
        "Training": hasattr(crf, "history_") and partial(training, crf),
        "Suspects": gaps is not None and partial(suspects, crf, X, y, tokens, gaps),
        "Transitions": partial(transitions, crf),
        "Attributes": partial(attributes, crf),
        "Model": partial(model, crf, y, gaps),
    }
    known = {name: make for name, make in sections.items() if make}
    written = document(
        title,
        files("sdcastruct.report").joinpath("report.css").read_text(encoding="utf-8"),
        tag("h1", title),
        tag("p", "Linear-chain conditional random field", class_="subtitle"),
        certificate(crf),
        contents(*known),
        *(section(name, *make()) for name, make in known.items()),
        tag("footer", f"sdcastruct {sdcastruct.__version__}, {datetime.date.today()}"),
    )
    with archive.replacing(path) as file:
        file.write(written.encode("utf-8", "xmlcharrefreplace"))


def _check_path(path):
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path={path!r}: expected a path")
    path = Path(path)
    if not path.absolute().parent.is_dir():
        raise ValueError(f"path={str(path)!r}: there is no folder {str(path.parent)!r}")
    if path.is_dir():
        raise ValueError(f"path={str(path)!r}: expected a file, this is a folder")
    return path


def _check_pair(name, X, other_name, y):
    """Check that there is one thing in y for every position of X, or that neither is given."""
    if (X is None) != (y is None):
        raise ValueError(f"{name} and {other_name}: expected both or neither")
    if X is None:
        return
    if len(X) != len(y):
        raise ValueError(f"{other_name} has {len(y)} sequences but {name} has {len(X)}")
    for i, (x, labels) in enumerate(zip(X, y, strict=True)):
        if len(labels) != _length(x):
            raise ValueError(
                f"{other_name}[{i}] has {len(labels)} entries but {name}[{i}] has {_length(x)}"
            )


def _check_training(crf, X, tokens):
    if tokens is not None:
        _check_pair("tokens", tokens, "X", X)
    known = getattr(crf, "suspects_", None)
    if X is not None and known is not None and len(X) != len(known):
        raise ValueError(f"X has {len(X)} sequences but the CRF was trained on {len(known)}")


def _length(x):
    return x.shape[0] if hasattr(x, "shape") else len(x)
