"""From items to arrays: templates, vectorizer, vocabulary, label encoder."""

from sdcastruct.features.labels import SequenceLabelEncoder
from sdcastruct.features.templates import apply_templates, template_name
from sdcastruct.features.vectorizer import Vectorizer
from sdcastruct.features.vocabulary import Vocabulary

__all__ = [
    "SequenceLabelEncoder",
    "Vectorizer",
    "Vocabulary",
    "apply_templates",
    "template_name",
]
