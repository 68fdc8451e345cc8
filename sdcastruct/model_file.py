"""The file of a trained `CRF`: weights, names and certificate, without pickle."""

import numpy as np
from scipy import sparse

from sdcastruct import archive
from sdcastruct.features import SequenceLabelEncoder, Vectorizer, Vocabulary
from sdcastruct.models import ChainModel

VERSION = 1
CERTIFICATE = (
    "primal_objective_",
    "dual_objective_",
    "duality_gap_",
    "converged_",
    "n_epochs_",
)


def write(crf, path, prune, extra):
    """Write an estimator; see `CRF.save`."""
    attributes, bias, transitions = crf._weight_tables()
    certificate = {name: getattr(crf, name) for name in CERTIFICATE}
    kept = np.where(np.abs(attributes) > prune, attributes, 0.0)
    if not np.array_equal(kept, attributes):
        certificate.update(dict.fromkeys(CERTIFICATE[:3], np.nan), converged_=False)
    for label in crf.classes_:
        if not _is_plain(label):
            raise TypeError(f"classes_ has {label!r}: expected labels that JSON knows")
    header = {
        "classes": crf.classes_,
        "n_attributes": crf._n_attributes,
        "items": crf._vectorizer is not None,
        "forbidden": crf.model_.forbidden,
        "params": {k: v for k, v in crf.get_params().items() if _is_plain(v)},
        "certificate": certificate,
        "extra": extra,
    }
    rows = sparse.csr_matrix(kept)
    arrays = {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr}
    arrays.update(bias=bias, transitions=transitions)
    if crf._vectorizer is not None:
        text, lengths = crf._vectorizer.vocabulary_.to_arrays()
        arrays.update(text=text, lengths=lengths)
    archive.write(path, "model", VERSION, header, arrays, compress=True)


def read(cls, path):
    """Return the estimator of a class that `write` wrote."""
    header, arrays = archive.read(path, "model", VERSION)
    crf = cls(**header["params"])
    crf._encoder = SequenceLabelEncoder.of(header["classes"])
    crf.classes_, crf._n_attributes = crf._encoder.classes_, header["n_attributes"]
    K, A = len(crf.classes_), crf._n_attributes
    crf.model_ = ChainModel(K, A, header["forbidden"])
    crf._vectorizer = None
    if header["items"]:
        vocabulary = Vocabulary.from_arrays(arrays["text"], arrays["lengths"])
        crf._vectorizer = Vectorizer.of(vocabulary, min_freq=crf._min_freq)
    parts = arrays["data"], arrays["indices"], arrays["indptr"]
    attributes = sparse.csr_matrix(parts, (A, K)).toarray()
    tables = attributes, arrays["bias"], arrays["transitions"]
    crf.coef_ = np.concatenate([table.ravel() for table in tables])
    for name, value in header["certificate"].items():
        setattr(crf, name, value)
    crf.extra_, crf._state = header["extra"], None
    return crf


def _is_plain(value):
    """Return whether JSON can keep a value as it is."""
    return isinstance(value, str | int | float | bool | None)
