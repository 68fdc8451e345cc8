"""The command line as a person meets it."""

import subprocess
import sys

import pytest

from sdcastruct import cli


def test_demo_prints_a_certificate_and_draws(tmp_path, capsys):
    figure = tmp_path / "convergence.png"
    assert cli.main(["demo", "--tol", "0.05", "--figure", str(figure)]) == 0
    printed = capsys.readouterr()
    assert "certified" in printed.out
    assert "test error" in printed.out
    assert str(figure) in printed.out
    assert "epoch" in printed.err
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_figure_that_cannot_be_written_is_one_line(tmp_path, capsys):
    assert cli.main(["demo", "--tol", "0.5", "--figure", str(tmp_path / "no" / "x.png")]) == 1
    (line,) = capsys.readouterr().err.splitlines()  # no progress: nothing was trained in vain
    assert "there is no folder" in line


@pytest.mark.parametrize("arguments", [[], ["--help"], ["demo", "--help"], ["--version"]])
def test_help(arguments, tmp_path):
    run = subprocess.run(
        [sys.executable, "-m", "sdcastruct.cli", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert run.returncode == (0 if arguments else 2)
    assert run.stdout or run.stderr


def test_bad_tolerance_is_one_line(capsys):
    assert cli.main(["demo", "--tol", "-1"]) == 1
    assert "tol=-1.0: expected" in capsys.readouterr().err
