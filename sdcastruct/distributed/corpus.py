"""Corpora that only the workers read: files, or the partitions of a dask bag.

Sources are read once for the vocabulary and once more by the worker that keeps their samples; if
that one is lost, by another one.
"""

import glob
import os

import numpy as np
from dask.bag import Bag
from distributed import Future
from scipy import sparse

from sdcastruct.distributed.problem import DistributedProblem
from sdcastruct.distributed.sources import File, Partition, chunks
from sdcastruct.distributed.vocabulary import learn
from sdcastruct.features import SequenceLabelEncoder, Templates, Vectorizer, load_templates
from sdcastruct.models import ChainModel
from sdcastruct.models.stacked import StackedRows


def from_files(paths, templates="chunking"):
    """Return a corpus of files of text that workers read themselves.

    The files are read in the order given; every worker must reach them under the same names. There
    should be at least as many as workers.

    Parameters
    ----------
    paths : str, Path or list of them
        Names of files, or patterns such as ``"train-*.txt"``, whose files are taken in the order of
        their names.
    templates : str, Templates or None, default "chunking"
        The files have columns of which the last is the label; this makes attributes of the others,
        see `sdcastruct.features.load_templates`. None: the files are in CRFsuite's format.
    """
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    if isinstance(templates, str):
        templates = load_templates(templates)
    if templates is not None and not isinstance(templates, Templates):
        raise TypeError(f"templates={templates!r}: expected templates, their source or None")
    names = []
    for path in map(os.fspath, paths):
        found = sorted(glob.glob(path)) if glob.has_magic(path) else [path]
        if not found:
            raise ValueError(f"paths has {path!r}: there is no such file")
        names.extend(os.path.abspath(name) for name in found)
    if not names:
        raise ValueError(f"paths={paths!r}: expected at least one file")
    return Corpus([File(name, templates) for name in names])


def from_bag(bag):
    """Return a corpus of the partitions of a bag.

    A worker computes the partitions it needs by itself, so that the bag must not be persisted.

    Parameters
    ----------
    bag : dask.bag.Bag
        Of pairs (sequence of items, sequence of labels).
    """
    if not isinstance(bag, Bag):
        raise TypeError(f"bag={bag!r}: expected a dask.bag.Bag")
    if any(isinstance(value, Future) for value in dict(bag.dask).values()):
        raise ValueError(f"bag={bag!r} is persisted: expected a bag that workers can compute")
    return Corpus([Partition(number, part) for number, part in enumerate(bag.to_delayed())])


class Corpus:
    """Labelled sequences of items; made by `from_files` and `from_bag`.

    ``CRF(solver="dask").fit(corpus)`` trains on it.
    """

    def __init__(self, sources):
        self.sources = sources

    def learn(self, client, min_freq=1):
        """Find attributes and labels in a pass of the workers; return a `KnownCorpus`."""
        vocabulary, labels, sizes = learn(client, self.sources, min_freq)
        if not sum(sizes):
            raise ValueError("the corpus has no sequences")
        return KnownCorpus(self.sources, sizes, vocabulary, SequenceLabelEncoder().fit([labels]))

    def train(self, crf, solver, X_dev, y_dev, sample_weight):
        """Train an estimator on these sequences; `CRF.fit` calls it.

        Parameters
        ----------
        crf : CRF
        solver : DaskSDCA
        X_dev, y_dev, sample_weight
            See `CRF.fit`.
        """
        given = {
            "class_weight": crf.class_weight,
            "patience": crf.patience,
            "sample_weight": sample_weight,
        }
        for name, value in given.items():
            if value is not None:
                raise ValueError(f"{name}={value!r}: expected None with a corpus")
        start = crf._previous() if crf.warm_start else None
        with solver.connected() as client:
            known = self.learn(client, crf._min_freq)
            crf._vectorizer = Vectorizer.of(known.vocabulary, min_freq=crf._min_freq)
            crf._n_attributes, classes = len(known.vocabulary), known.encoder.classes_
            model = ChainModel(len(classes), crf._n_attributes, crf._forbidden_codes(classes))
            crf._solve(solver, model, known.bind(model), known.encoder, X_dev, y_dev, start)

    def __repr__(self):
        return f"Corpus({len(self.sources)} sources)"


class KnownCorpus:
    """A corpus whose attributes, labels and sizes are known.

    Attributes
    ----------
    vocabulary : Vocabulary
    encoder : SequenceLabelEncoder
    n_samples : int
    """

    def __init__(self, sources, sizes, vocabulary, encoder):
        kept = [(source, size) for source, size in zip(sources, sizes, strict=True) if size]
        self.sources, self.sizes = zip(*kept, strict=True)
        self.vocabulary, self.encoder = vocabulary, encoder
        self.n_samples = sum(sizes)

    def bind(self, model):
        """Return the problem of a model and these sequences."""
        return DistributedProblem(model, self, self.n_samples)

    def parts(self, model, n, weights):
        """Return at most n parts of neighbouring sources, of about equal numbers of sequences."""
        if weights is not None:
            raise ValueError("weights of samples are given: expected none for a corpus")
        middles = np.cumsum(self.sizes) - np.divide(self.sizes, 2)
        part_of = (middles * n // self.n_samples).astype(int)
        groups = [np.flatnonzero(part_of == k) for k in range(n)]
        return [
            CorpusPart(model, [self.sources[s] for s in group], self.vocabulary, self.encoder)
            for group in groups
            if group.size
        ]

    def losses(self, model, w):
        """The driver has no samples."""
        return None

    def order(self, model):
        """Weights are packed in the order of the model."""
        return None


class CorpusPart:
    """Sources whose sequences a worker will hold."""

    def __init__(self, model, sources, vocabulary, encoder):
        self.model, self.sources = model, sources
        self.vocabulary, self.encoder = vocabulary, encoder
        self.name = f"{sources[0]} to {sources[-1]}" if len(sources) > 1 else f"{sources[0]}"

    def bind(self):
        """Read the sequences and pack them."""
        vectorizer, rows, codes = Vectorizer.of(self.vocabulary), [], []
        for source in self.sources:
            for X, y in chunks(source):
                rows.append(vectorizer.transform(X))
                codes.extend(self.encoder.transform(y))
        stacked = sparse.vstack([chunk.rows for chunk in rows], format="csr")
        lengths = np.concatenate([chunk.lengths for chunk in rows])
        return self.model.bind(StackedRows(stacked, lengths), codes)
