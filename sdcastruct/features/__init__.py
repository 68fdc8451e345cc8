"""From items to arrays: templates, vectorizer, vocabulary, label encoder."""

from sdcastruct.features.columns import (
    read_columns,
    read_crfsuite,
    write_columns,
    write_crfsuite,
)
from sdcastruct.features.labels import SequenceLabelEncoder
from sdcastruct.features.templates import (
    Templates,
    apply_templates,
    load_templates,
    parse_crfpp,
    template_name,
)
from sdcastruct.features.vectorizer import Vectorizer
from sdcastruct.features.vocabulary import Vocabulary

__all__ = [
    "SequenceLabelEncoder",
    "Templates",
    "Vectorizer",
    "Vocabulary",
    "apply_templates",
    "load_templates",
    "parse_crfpp",
    "read_columns",
    "read_crfsuite",
    "template_name",
    "write_columns",
    "write_crfsuite",
]
