"""The attributes and labels of a corpus that is spread over sources.

Every source is counted where it is read, and neighbours are merged two by two. Attributes are
numbered in the order of their first mention, as one process that reads the sources in their order
numbers them, and the rare ones are left out at the end.
"""

from typing import NamedTuple

import numpy as np

from sdcastruct.distributed.sources import chunks
from sdcastruct.features.items import occurrences, read
from sdcastruct.features.vocabulary import Vocabulary
from sdcastruct.models.checks import check_count


class Count(NamedTuple):
    """Attributes and how often each is mentioned, labels, and the number of sequences by source."""

    vocabulary: Vocabulary
    mentions: np.ndarray
    labels: list
    sizes: list


def learn(client, sources, min_freq):
    """Return vocabulary, labels and numbers of sequences of sources, in a pass of the workers."""
    min_freq = check_count("min_freq", min_freq, 1)
    counts = [client.submit(count, source, pure=False) for source in sources]
    while len(counts) > 1:
        pairs = [counts[k : k + 2] for k in range(0, len(counts), 2)]
        counts = [
            client.submit(merge, *pair, pure=False) if len(pair) == 2 else pair[0] for pair in pairs
        ]
    return client.submit(keep, counts[0], min_freq, pure=False).result()


def count(source):
    """Return the `Count` of one source."""
    vocabulary, mentions, labels, size = Vocabulary(), np.zeros(0, np.int64), {}, 0
    for X, y in chunks(source):
        codes = read(X, vocabulary, learn=True)[0]
        mentions = _longer(mentions, len(vocabulary)) + occurrences(codes, len(vocabulary))
        labels.update(dict.fromkeys(label for sequence in y for label in sequence))
        size += len(X)
    return Count(vocabulary, mentions, list(labels), [size])


def merge(first, second):
    """Return the `Count` of two neighbours."""
    vocabulary = Vocabulary.from_arrays(*first.vocabulary.to_arrays())
    codes = np.zeros(0, np.int32)
    if len(second.vocabulary):
        codes = read([[second.vocabulary.names()]], vocabulary, learn=True)[0]
    mentions = _longer(first.mentions, len(vocabulary))
    mentions[codes] += second.mentions
    labels = list(dict.fromkeys(first.labels + second.labels))
    return Count(vocabulary, mentions, labels, first.sizes + second.sizes)


def keep(counted, min_freq):
    """Return vocabulary without rare attributes, labels, and numbers of sequences."""
    return counted.vocabulary.keep(counted.mentions >= min_freq), counted.labels, counted.sizes


def _longer(mentions, size):
    return np.concatenate([mentions, np.zeros(size - mentions.size, np.int64)])
