"""The commands for files of sequences, run as a person would."""

import os
import re
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from sdcastruct import CRF, cli

TRAIN = """\
the DT B-NP
cat NN I-NP
sleeps VB B-VP

a DT B-NP
dog NN I-NP
barks VB B-VP
. . O

"""
TEST = """\
the DT B-NP
dog NN I-NP
sleeps VB B-VP

"""
TEMPLATE = """\
# words and their neighbours
U00:%x[0,0]
U01:%x[0,1]
U02:%x[-1,1]/%x[0,1]
B
"""
CRFSUITE = "B-NP\tw=the\tp=DT\nI-NP\tw=cat\tp=NN:2\n\nO\tw=.\n\n"


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Files to work with, in the folder where commands run."""
    monkeypatch.chdir(tmp_path)
    contents = {"train": TRAIN, "test": TEST, "template": TEMPLATE, "crfsuite": CRFSUITE}
    for name, text in contents.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def run(*arguments, stdin=None):
    """Run a command in a process of its own; return (code, output, errors)."""
    done = subprocess.run(
        [sys.executable, "-m", "sdcastruct.cli", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=os.environ,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("template", ["template", "chunking"])
def test_train_tag_eval(files, capsys, template):
    options = ["--template", template, "--model", "m", "-C", "10", "--dev", "test", "--quiet"]
    assert cli.main(["train", "train", *options]) == 0
    printed = capsys.readouterr()
    assert "certified" in printed.out
    assert "dev accuracy     100.00%" in printed.out
    assert printed.err == ""
    assert cli.main(["tag", "m", "test"]) == 0
    tagged = capsys.readouterr().out
    assert tagged.splitlines()[0] == "the DT B-NP B-NP"
    (files / "tagged").write_text(tagged)
    assert cli.main(["eval", "tagged"]) == 0
    assert "accuracy: 100.00%; precision: 100.00%; recall: 100.00%; FB1: 100.00" in (
        capsys.readouterr().out
    )
    assert cli.main(["info", "m", "--top", "2"]) == 0
    assert "B-NP -> I-NP" in capsys.readouterr().out


def test_streams(files):
    options = ["--template", "chunking", "--model", "m", "-C", "10"]
    code, out, err = run("train", "-", *options, stdin=TRAIN)
    assert code == 0
    assert "certified" in out
    assert "epoch" in err  # progress does not mix with results
    code, tagged, err = run("tag", "m", stdin=TEST)
    assert (code, err) == (0, "")
    code, out, _ = run("eval", stdin=tagged)
    assert code == 0
    assert out.startswith("processed 3 tokens with 2 phrases; found: 2 phrases; correct: 2.\n")


def test_tagging_without_labels(files, capsys):
    assert cli.main(["train", "train", "--template", "template", "--model", "m", "--quiet"]) == 0
    (files / "bare").write_text("the DT\ndog NN\n")
    capsys.readouterr()
    assert cli.main(["tag", "m", "bare"]) == 0
    assert [len(line.split()) for line in capsys.readouterr().out.splitlines()] == [3, 3, 0]


def test_crfsuite_format(files, capsys):
    assert cli.main(["train", "crfsuite", "--crfsuite", "--model", "m", "-C", "50", "--quiet"]) == 0
    crf = CRF.load("m")
    assert set(crf.attributes_) == {"w=the", "p=DT", "w=cat", "p=NN", "w=."}
    capsys.readouterr()
    assert cli.main(["tag", "m", "crfsuite"]) == 0
    assert capsys.readouterr().out.split() == ["B-NP", "I-NP", "O"]


@pytest.mark.parametrize("dev", [(), ("--dev", "test")])
def test_report(files, capsys, dev):
    options = ["--template", "chunking", "--model", "m", "--report", "r.html", "-C", "10", *dev]
    assert cli.main(["train", "train", *options, "--quiet"]) == 0
    assert re.search(r"^report +r.html, \d\.\d MB$", capsys.readouterr().out, re.MULTILINE)
    page = (files / "r.html").read_text(encoding="utf-8")
    assert "<title>m</title>" in page
    assert "<b>barks</b>" in page  # words are shown, not attributes
    assert ("F1 of phrases</dt><dd>100.00%" in page) == bool(dev)
    assert not list(files.glob("*.part"))


def test_report_of_crfsuite_files(files, capsys):
    options = ["--crfsuite", "--model", "m", "--report", "r.html", "--quiet"]
    assert cli.main(["train", "crfsuite", *options]) == 0
    assert "<b>w=cat</b>" in (files / "r.html").read_text(encoding="utf-8")


def test_options_reach_the_estimator(files, capsys):
    options = ["--model", "m", "--template", "chunking", "--solver", "lbfgs", "--min-freq", "2"]
    assert cli.main(["train", "train", *options, "--forbidden", "iob2", "--quiet"]) == 0
    crf = CRF.load("m")
    assert crf.solver == "lbfgs"
    assert crf.forbidden == "iob2"
    assert all("cat" not in name for name in crf.attributes_)
    marginals = crf.predict_marginals([[["w[0]=cat"]]])[0][0]
    assert marginals["I-NP"] == 0.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "nowhere", "--template", "chunking", "--model", "m"], "nowhere"),
        (["train", "train", "--template", "nowhere", "--model", "m"], "no such file"),
        (["train", "train", "--template", "bad", "--model", "m"], "bad, line 1"),
        (["train", "ragged", "--template", "chunking", "--model", "m"], "ragged, line 2"),
        (["train", "latin", "--template", "chunking", "--model", "m"], "latin, line 1"),
        (["train", "empty", "--template", "chunking", "--model", "m"], "there are no sequences"),
        (["train", "train", "--template", "chunking", "--model", "no/m"], "there is no folder"),
        (["train", "train", "--template", "chunking", "--model", "folder"], "this is a folder"),
        (
            ["train", "train", "--template", "chunking", "--model", "m", "--report", "no/r.html"],
            "--report no/r.html: there is no folder no",
        ),
        (
            ["train", "train", "--template", "chunking", "--model", "m", "--report", "folder"],
            "--report folder: expected a file, this is a folder",
        ),
        (
            ["train", "train", "--template", "chunking", "--model", "m", "--report", "./m"],
            "expected another file than --model",
        ),
        (
            ["train", "train", "--template", "chunking", "--model", "m", "-C", "0"],
            "C=0.0: expected",
        ),
        (["train", "train", "--template", "wide", "--model", "m"], "column"),
        (["train", "colon", "--crfsuite", "--model", "m"], "colon, line 1"),
        (["train", "train", "--crfsuite", "--model", "m"], "train: no line has an attribute"),
        (["train", "two", "--template", "chunking", "--model", "m"], "only 1 besides the label"),
        (["train", "two", "--template", "next", "--model", "m"], "only 1 columns besides"),
        (
            ["train", "train", "--template", "chunking", "--model", "m", "--patience", "3"],
            "--patience 3: expected --dev with it",
        ),
        (
            ["train", "train", "--template", "chunking", "--model", "m", "--dev", "empty"],
            "empty: there are no sequences",
        ),
        (
            ["train", "train", "--template", "chunking", "--model", "m", "--prune", "-1"],
            "--prune -1.0: expected at least 0",
        ),
        (
            ["train", "train", "--template", "chunking", "--model", "m", "--seed", "-1"],
            "--seed -1: expected at least 0",
        ),
        (["tag", "python", "test"], "python has no template: expected a model that train wrote"),
        (["info", "python", "--top", "0"], "--top 0: expected at least 1"),
        (["info", "zip"], "'zip' is no readable model: it has no header"),
        (["tag", "nowhere", "test"], "nowhere"),
        (["tag", "train", "test"], "'train' is no readable model"),
        (["info", "train"], "'train' is no readable model"),
        (["eval", "nowhere"], "nowhere"),
        (["eval", "one"], "at least two columns"),
        (["eval", "empty"], "there are no sequences"),
    ],
    ids=lambda value: " ".join(value[:4]) if isinstance(value, list) else "",
)
def test_errors_are_one_helpful_line(files, capsys, arguments, message):
    (files / "folder").mkdir()
    (files / "bad").write_text("X01:%x[0,0]\n")
    (files / "wide").write_text("U01:%x[0,7]\n")
    (files / "ragged").write_text("a DT B-NP\nb NN\n")
    (files / "latin").write_bytes("caf\u00e9 NN O\n".encode("latin-1"))
    (files / "empty").write_text("\n\n")
    (files / "one").write_text("O\nO\n")
    (files / "colon").write_text("O\tw=:)\n")
    (files / "two").write_text("the B-NP\ncat I-NP\n")
    (files / "next").write_text("U01:%x[0,1]\n")
    CRF().fit([[["a"], ["b"]]], [["X", "Y"]]).save("python")
    with zipfile.ZipFile(files / "zip", "w") as archive:
        archive.writestr("some", "text")
    assert cli.main(arguments) == 1
    printed = capsys.readouterr()
    (line,) = printed.err.splitlines()
    assert line.startswith("sdcastruct: ")
    assert message in line
    assert printed.out == ""
    assert not (files / "m").exists()


def test_not_reaching_the_tolerance_is_a_failure_but_writes_the_model(files, capsys):
    options = ["--template", "chunking", "--model", "m", "--max-epochs", "1", "--tol", "1e-12"]
    assert cli.main(["train", "train", *options, "--quiet"]) == 1
    assert "not reached" in capsys.readouterr().out
    assert CRF.load("m").predict([[["w[0]=the"]]])


@pytest.mark.skipif(sys.platform == "win32", reason="pipes of a shell")
def test_broken_pipe(files):
    assert cli.main(["train", "train", "--template", "chunking", "--model", "m", "--quiet"]) == 0
    (files / "long").write_text(TEST * 20000)
    command = f"{sys.executable} -m sdcastruct.cli tag m long; echo code $? >&2"
    done = subprocess.run(
        ["bash", "-c", f"({command}) | head -1"], capture_output=True, text=True, cwd=files
    )
    assert done.stdout == "the DT B-NP B-NP\n"
    assert done.stderr == "sdcastruct: the output was closed before the end\ncode 1\n"


@pytest.mark.parametrize("command", ["train", "tag", "eval", "info"])
def test_help_teaches(files, command):
    code, out, _ = run(command, "--help")
    assert code == 0
    assert len(out.splitlines()) > 5


def test_scores_are_those_of_conlleval(files, capsys):
    rng = np.random.default_rng(0)
    labels = rng.choice(["B-NP", "I-NP", "O"], size=(50, 2))
    (files / "tagged").write_text("".join(f"w {a} {b}\n" for a, b in labels))
    assert cli.main(["eval", "tagged"]) == 0
    assert capsys.readouterr().out.startswith("processed 50 tokens with ")
