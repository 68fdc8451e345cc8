"""Find a corpus archive: the folder SDCASTRUCT_DATA, then the user's cache, then a download.

The archives are those of the NLTK data collection. Their sha256 is checked wherever they come from.
"""

import hashlib
import os
from pathlib import Path

ENVIRONMENT = "SDCASTRUCT_DATA"
SOURCE = "https://raw.githubusercontent.com/nltk/nltk_data/gh-pages/packages/corpora/"
SHA256 = {
    "conll2000.zip": "01e65164f268366e7caa0db92332a1955d081908c87016e2c7640c3c5279b7cd",
    "conll2002.zip": "64440e49236d0d393e08e0b266284966d68e2d2a82a50cc41b8e96d98c03b5c8",
}


def fetch(name: str) -> Path:
    """Return the path of a corpus archive, downloaded if need be.

    Parameters
    ----------
    name : str
        A key of ``SHA256``.

    Raises
    ------
    FileNotFoundError
        ``SDCASTRUCT_DATA`` names no folder, or the file is nowhere and the download failed.
    ImportError
        The file must be downloaded and pooch is not installed.
    ValueError
        The file is not the one with the known checksum.
    """
    folder = os.environ.get(ENVIRONMENT)
    if not folder:
        return _cached_or_downloaded(name)
    if not Path(folder).is_dir():
        raise FileNotFoundError(f"{ENVIRONMENT} is {folder!r}, expected an existing folder")
    path = Path(folder) / name
    if not path.is_file():
        return _cached_or_downloaded(name)
    _check_sha256(path)
    return path


def _check_sha256(path):
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != SHA256[path.name]:
        raise ValueError(
            f"{path} is not the known file: expected sha256 {SHA256[path.name]}, found {found}"
        )


def _cached_or_downloaded(name):
    missing = f"{name} is not in {ENVIRONMENT}={os.environ.get(ENVIRONMENT, '')!r}"
    by_hand = f"put it (sha256 {SHA256[name]}) into a folder and set {ENVIRONMENT} to that"
    try:
        import pooch
    except ImportError as error:
        raise ImportError(
            f"{missing} and downloading needs pooch: pip install 'sdcastruct[data]', or {by_hand}"
        ) from error
    try:
        path = pooch.retrieve(
            url=SOURCE + name,
            known_hash=f"sha256:{SHA256[name]}",
            fname=name,
            path=pooch.os_cache("sdcastruct"),
            progressbar=True,
        )
    except OSError as error:
        raise FileNotFoundError(
            f"{missing} nor in {pooch.os_cache('sdcastruct')}, and the download of "
            f"{SOURCE + name} failed ({error}); {by_hand}"
        ) from None
    return Path(path)
