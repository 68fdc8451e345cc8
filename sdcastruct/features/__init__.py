"""From attributes to arrays: templates, vectorizer, label encoder."""

from sdcastruct.features.labels import SequenceLabelEncoder
from sdcastruct.features.templates import apply_templates, template_name
from sdcastruct.features.vectorizer import Vectorizer

__all__ = ["SequenceLabelEncoder", "Vectorizer", "apply_templates", "template_name"]
