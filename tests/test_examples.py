"""Every example runs as a person would run it, and is a page of the gallery of the docs."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
NEED_CORPORA = ("chunking", "named_entities")


def run(folder, *arguments):
    """Run Python in a folder; return what it prints."""
    process = subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(path, tmp_path):
    if path.stem in NEED_CORPORA and "SDCASTRUCT_DATA" not in os.environ:
        pytest.skip("SDCASTRUCT_DATA names no folder with the corpora")
    printed = run(tmp_path, "-W", "error", path)
    assert printed
    figures = set(re.findall(r"drawn in (\S+\.png)", printed))
    assert {figure.name for figure in tmp_path.glob("*.png")} == figures


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_has_a_title(path):
    title, line, empty = ast.get_docstring(ast.parse(path.read_text())).splitlines()[:3]
    assert line == "=" * len(title)
    assert empty == ""


def test_example_package_builds_and_runs(tmp_path):
    folder = tmp_path / "choice"
    sources = shutil.ignore_patterns("build", "*.c", "*.so", "*.pyd", "__pycache__")
    shutil.copytree(ROOT / "examples" / "choice", folder, ignore=sources)
    (commands,) = re.findall(r"```sh\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)
    for command in commands.splitlines():
        python, *arguments = command.split()
        assert python == "python"
        printed = run(folder, *arguments)
    assert "an hour is worth" in printed
    assert list(folder.glob("choice*.so")) + list(folder.glob("choice*.pyd"))
