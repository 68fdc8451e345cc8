"""The command line: ``sdcastruct demo | train | tag | eval | info | reproduce``."""

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np

import sdcastruct
from sdcastruct import datasets, plotting, sequences
from sdcastruct.models import ChainModel
from sdcastruct.reproduce import command
from sdcastruct.samplers import Gap
from sdcastruct.solvers import SDCA

TEST_FOLD = 9


def main(arguments=None):
    """Run the command line; return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        return options.run(options)
    except BrokenPipeError:
        # Whoever read our output has left; the interpreter must not try to flush it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print("sdcastruct: the output was closed before the end", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("sdcastruct: interrupted", file=sys.stderr)
        return 130
    except (OSError, ValueError, TypeError) as error:
        print(f"sdcastruct: {error}", file=sys.stderr)
        return 1


def _parser():
    parser = argparse.ArgumentParser(
        prog="sdcastruct",
        description="Train conditional random fields to a certified optimum.",
        epilog="Start with:  sdcastruct demo.  With columns of words, tags and labels:  sdcastruct "
        "train train.txt --template chunking --model chunks.crf,  then  sdcastruct tag chunks.crf "
        "test.txt | sdcastruct eval",
    )
    parser.add_argument("--version", action="version", version=sdcastruct.__version__)
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    demo = commands.add_parser(
        "demo",
        help="train on the bundled OCR letters and show the certificate",
        description="Train a chain CRF on the bundled OCR letters (nine folds of handwritten "
        "words) by SDCA with gap sampling, print the certified duality gap and the error on the "
        "tenth fold, and draw the convergence.",
    )
    demo.add_argument(
        "--tol", type=float, default=1e-3, help="relative gap to certify (%(default)s)"
    )
    demo.add_argument("--seed", type=int, default=0, help="seed of the sampling (%(default)s)")
    demo.add_argument(
        "--figure",
        type=Path,
        default=Path("sdcastruct-demo.png"),
        help="where to draw the convergence (%(default)s)",
    )
    demo.set_defaults(run=run_demo)
    sequences.add_commands(commands)
    command.add_command(commands)
    return parser


def run_demo(options):
    """Train on the bundled letters, print the certificate and draw the convergence."""
    if not options.figure.parent.is_dir():
        raise ValueError(f"--figure {options.figure}: there is no folder {options.figure.parent}")
    letters = datasets.load_ocr()
    train, test = (
        np.flatnonzero(pick) for pick in (letters.folds != TEST_FOLD, letters.folds == TEST_FOLD)
    )
    model = ChainModel(n_states=26, n_features=128)
    problem = model.bind([letters.X[i] for i in train], [letters.y[i] for i in train])
    print(
        f"OCR letters: {problem.n_samples} words to train on, {test.size} to test on, "
        f"{problem.dim} weights, lambda = 1/n"
    )
    started = time.perf_counter()
    solver = SDCA(sampler=Gap(non_uniformity=0.8), random_state=options.seed)
    result = solver.solve(problem, tol=options.tol, certify_every=1, verbose=True)
    seconds = time.perf_counter() - started
    _print_certificate(result, options.tol, seconds)
    predicted = np.concatenate(model.decode([letters.X[i] for i in test], result.w))
    truth = np.concatenate([letters.y[i] for i in test])
    print(f"test error       {np.mean(predicted != truth):.2%} of {truth.size} letters")
    _draw_convergence(result, options.figure)
    return 0 if result.converged else 1


def _print_certificate(result, tol, seconds):
    verdict = "certified" if result.converged else "not reached"
    print(f"primal           {result.primal:.6f}")
    print(f"dual             {result.dual:.6f}")
    print(f"duality gap      {result.gap:.6f}, {result.relative_gap:.2e} of the primal")
    print(f"                 tolerance {tol:g} {verdict}: the optimum lies between dual and primal")
    print(f"work             {result.n_epochs} epochs, {result.n_updates} updates, {seconds:.1f} s")


def _draw_convergence(result, path):
    axes = plotting.convergence(result)
    axes.set_title("SDCA with gap sampling on the OCR letters")
    axes.figure.savefig(path, dpi=150)
    print(f"convergence      drawn in {path}")


if __name__ == "__main__":
    sys.exit(main())
