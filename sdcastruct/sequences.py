"""Commands for files of sequences: ``sdcastruct train | tag | eval | info``.

Files have one token per line and an empty line after each sequence: columns of which the last is
the label (``--template`` says how to make attributes of the others), or CRFsuite's format, a label
and its attributes separated by tabs (``--crfsuite``). "-" is standard input.
"""

import contextlib
import sys
from pathlib import Path

import numpy as np

from sdcastruct.crf import CRF
from sdcastruct.evaluation import evaluate
from sdcastruct.features import load_templates, read_columns, read_crfsuite
from sdcastruct.report import write_report
from sdcastruct.solvers.named import SOLVERS


def add_commands(commands):
    """Add the commands to the parser."""
    _add_train(commands)
    tag = commands.add_parser(
        "tag",
        help="predict the labels of sequences",
        description="Predict labels with a trained model. Columns are printed with the predicted "
        "label as a last column; for CRFsuite's format one label per line. The label column of "
        "the input may be missing.",
    )
    tag.add_argument("model", type=Path, help="model written by train")
    tag.add_argument("data", nargs="?", default="-", help="file to tag (standard input)")
    tag.set_defaults(run=run_tag)
    score = commands.add_parser(
        "eval",
        help="compare predicted with true labels, as conlleval does",
        description="Read columns of which the last two are the true and the predicted label, and "
        "print accuracy of tokens, precision, recall and F1 of phrases, as conlleval prints them.",
    )
    score.add_argument("data", nargs="?", default="-", help="tagged file (standard input)")
    score.set_defaults(run=run_eval)
    info = commands.add_parser(
        "info",
        help="show the certificate and the strongest weights of a model",
        description="Show what a model was trained with, its certificate, its strongest "
        "attributes and transitions.",
    )
    info.add_argument("model", type=Path, help="model written by train")
    info.add_argument("--top", type=int, default=10, help="so many of each (%(default)s)")
    info.set_defaults(run=run_info)


def _add_train(commands):
    train = commands.add_parser(
        "train",
        help="train a model on sequences to a certified optimum",
        description="Train a linear-chain CRF until a full pass proves that its objective is "
        "within the tolerance of the optimum, and write it to a file.",
        epilog="Example:  sdcastruct train train.txt --template chunking --model chunks.crf",
    )
    train.add_argument("data", help="file to train on, - for standard input")
    train.add_argument("--model", type=Path, required=True, help="where to write the model")
    kind = train.add_mutually_exclusive_group(required=True)
    kind.add_argument(
        "--template", help="the data are columns: a CRF++ template file, or 'chunking'"
    )
    kind.add_argument("--crfsuite", action="store_true", help="the data are in CRFsuite's format")
    train.add_argument("--dev", help="file to report the accuracy on after every epoch")
    train.add_argument(
        "--report",
        type=Path,
        metavar="HTML",
        help="write a page with the certificate, figures, weights, training sequences that may be "
        "mislabelled and, with --dev, scores",
    )
    train.add_argument("-C", type=float, default=1.0, help="inverse regularisation (%(default)s)")
    train.add_argument("--tol", type=float, default=1e-3, help="relative gap (%(default)s)")
    train.add_argument("--max-epochs", type=int, default=100, help="%(default)s")
    train.add_argument("--min-freq", type=int, default=1, help="of attributes (%(default)s)")
    train.add_argument("--solver", choices=SOLVERS, default="sdca", help="%(default)s")
    train.add_argument("--forbidden", choices=("iob2",), help="rules that labels obey")
    train.add_argument("--patience", type=int, help="stop when --dev has not improved so long")
    train.add_argument("--prune", type=float, default=0.0, help="drop weights up to this size")
    train.add_argument("--n-jobs", type=int, default=1, help="threads, -1 for all (%(default)s)")
    train.add_argument("--seed", type=int, default=0, help="of the sampling (%(default)s)")
    train.add_argument("--quiet", action="store_true", help="no progress bar")
    train.set_defaults(run=run_train)


def run_train(options):
    """Train a model, print its certificate, write it to a file."""
    _check_outputs(options)
    if options.patience is not None and options.dev is None:
        raise ValueError(f"--patience {options.patience}: expected --dev with it")
    for name in ("prune", "seed"):
        if getattr(options, name) < 0:
            raise ValueError(f"--{name} {getattr(options, name)}: expected at least 0")
    templates = None if options.crfsuite else _templates(options.template)
    X, y, rows = _read(options.data, templates, labelled=True)
    X_dev = y_dev = None
    if options.dev is not None:
        X_dev, y_dev, _ = _read(options.dev, templates, labelled=True)
    crf = CRF(
        C=options.C,
        solver=options.solver,
        tol=options.tol,
        max_epochs=options.max_epochs,
        min_freq=options.min_freq,
        forbidden=options.forbidden,
        patience=options.patience,
        n_jobs=options.n_jobs,
        random_state=options.seed,
        verbose=not options.quiet,
    )
    crf.fit(X, y, X_dev, y_dev)
    extra = {"template": None if templates is None else templates.source}
    crf.save(options.model, prune=options.prune, extra=extra)
    sizes = len(y), sum(map(len, y)), len(crf.classes_), crf.coef_.size
    print("{} sequences, {} tokens, {} labels, {} weights".format(*sizes))
    _print_certificate(crf)
    if options.dev is not None:
        print(f"dev accuracy     {crf.score(X_dev, y_dev):.2%}")
    _print_file("model", options.model)
    if options.report is not None:
        words = None if templates is None else [[row[0] for row in sentence] for sentence in rows]
        title = options.model.name
        write_report(options.report, crf, X, y, X_dev, y_dev, tokens=words, title=title)
        _print_file("report", options.report)
    return 0 if crf.converged_ else 1


def _check_outputs(options):
    """Check that the model and the report can be written."""
    for name, path in (("--model", options.model), ("--report", options.report)):
        if path is not None and not path.absolute().parent.is_dir():
            raise ValueError(f"{name} {path}: there is no folder {path.parent}")
        if path is not None and path.is_dir():
            raise ValueError(f"{name} {path}: expected a file, this is a folder")
    if options.report is not None and options.report.resolve() == options.model.resolve():
        raise ValueError(f"--report {options.report}: expected another file than --model")


def _print_file(what, path):
    print(f"{what:16} {path}, {path.stat().st_size / 1e6:.1f} MB")


def run_tag(options):
    """Print the input with predicted labels."""
    crf = CRF.load(options.model)
    if not crf.extra_ or "template" not in crf.extra_:
        raise ValueError(f"{options.model} has no template: expected a model that train wrote")
    source = crf.extra_["template"]
    templates = None if source is None else load_templates(source)
    X, _, rows = _read(options.data, templates)
    predicted = crf.predict(X) if X else []
    for sentence, labels in zip(rows, predicted, strict=True):
        for row, label in zip(sentence, labels, strict=True):
            print(*row, label)
        print()
    return 0


def run_eval(options):
    """Print the scores of tagged columns."""
    with _opened(options.data) as file:
        sentences = list(read_columns(file, name=options.data))
    if not sentences:
        raise ValueError(f"{options.data}: there are no sequences")
    if len(sentences[0][0]) < 2:
        raise ValueError(f"{options.data}: expected at least two columns, the true label and ours")
    truth = [[row[-2] for row in sentence] for sentence in sentences]
    print(evaluate(truth, [[row[-1] for row in sentence] for sentence in sentences]))
    return 0


def run_info(options):
    """Print what a model has learned."""
    if options.top < 1:
        raise ValueError(f"--top {options.top}: expected at least 1")
    crf = CRF.load(options.model)
    print(f"labels           {', '.join(map(str, crf.classes_))}")
    print(f"weights          {crf.coef_.size}, {np.count_nonzero(crf.coef_)} not zero")
    _print_certificate(crf)
    attributes, _, transitions = crf.model_.split_weights(crf.coef_)
    names = crf.attributes_
    print("\nstrongest attributes")
    for a, k in _strongest(attributes, options.top):
        print(f"{attributes[a, k]:+8.3f}  {crf.classes_[k]!s:10s} {names[a]}")
    print("\nstrongest transitions")
    for a, k in _strongest(transitions, options.top):
        print(f"{transitions[a, k]:+8.3f}  {crf.classes_[a]} -> {crf.classes_[k]}")
    return 0


def _strongest(table, n):
    """Return the places of the n largest entries in size, largest first."""
    order = np.argsort(-np.abs(table), axis=None, kind="stable")[:n]
    return zip(*np.unravel_index(order, table.shape), strict=True)


def _print_certificate(crf):
    gap, primal = crf.duality_gap_, crf.primal_objective_
    if np.isnan(gap):
        print("certificate      none: weights were pruned after training")
        return
    verdict = "certified" if crf.converged_ else "not reached"
    print(f"primal           {primal:.6f}")
    print(f"dual             {crf.dual_objective_:.6f}")
    print(f"duality gap      {gap:.6f}, {gap / primal if primal else gap:.2e} of the primal")
    print(f"                 tolerance {crf.tol:g} {verdict} after {crf.n_epochs_} epochs")


def _templates(source):
    """Return built-in templates or those of a file."""
    path = Path(source)
    if path.exists():
        try:
            return load_templates(path.read_text(encoding="utf-8"), name=source)
        except UnicodeDecodeError as error:
            raise ValueError(f"{source}: {error}") from error
    try:
        return load_templates(source, name=source)
    except ValueError as error:
        raise ValueError(f"--template {source}: no such file, and not 'chunking'") from error


def _read(data, templates, labelled=False):
    """Return items, labels and the rows to print of a file; labels are None if it has none."""
    with _opened(data) as file:
        if templates is None:
            pairs = list(read_crfsuite(file, name=data, labelled=labelled))
            labels, items = [list(p[0]) for p in pairs], [p[1] for p in pairs]
            rows = [[() for _ in sequence] for sequence in items]
        else:
            rows = list(read_columns(file, name=data))
            labels = [[row[-1] for row in sentence] for sentence in rows]
            items = _items(rows, templates, labelled)
    if labelled and not items:
        raise ValueError(f"{data}: there are no sequences")
    if labelled and templates is None and not any(map(any, items)):
        raise ValueError(f"{data}: no line has an attribute, expected them after tabs")
    return items, labels, rows


def _items(rows, templates, labelled):
    """Return the attributes of columns; the last one is the label and does not count."""
    if not rows:
        return []
    n_columns = len(rows[0][0])
    try:
        templates.check_columns(n_columns - 1)
    except ValueError as error:
        if labelled:
            raise
        try:  # perhaps there is no label column
            templates.check_columns(n_columns)
        except ValueError:
            raise error from None
        return templates.extract_all(rows)
    return templates.extract_all([[row[:-1] for row in sentence] for sentence in rows])


@contextlib.contextmanager
def _opened(data):
    """Open a file, or standard input for "-", as UTF-8."""
    if data == "-":
        if hasattr(sys.stdin, "reconfigure"):
            sys.stdin.reconfigure(encoding="utf-8", errors="strict")
        yield sys.stdin
    else:
        with open(data, encoding="utf-8") as file:
            yield file
