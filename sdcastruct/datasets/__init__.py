"""The data sets of the paper: OCR letters (bundled) and three tagging tasks (fetched).

Each loader returns a :class:`sklearn.utils.Bunch` with the inputs ``X``, the labels ``y`` and a
description ``DESCR``.
"""

from sdcastruct.datasets.conll import load_conll2000, load_conll2002, load_pos
from sdcastruct.datasets.ocr import load_ocr

__all__ = ["load_conll2000", "load_conll2002", "load_ocr", "load_pos"]
