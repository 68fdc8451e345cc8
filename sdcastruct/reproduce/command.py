"""The command ``sdcastruct reproduce``."""

import sys
from pathlib import Path

import sdcastruct
from sdcastruct.reproduce import figures, tables
from sdcastruct.reproduce.experiments import EXPERIMENTS
from sdcastruct.reproduce.laboratory import Laboratory
from sdcastruct.reproduce.runs import QUICK, Settings
from sdcastruct.reproduce.store import Store
from sdcastruct.reproduce.verdicts import ALL


def add_command(commands):
    """Add the command to the parser."""
    reproduce = commands.add_parser(
        "reproduce",
        help="run the paper's experiments and say which of its claims hold",
        description="Run experiments of the paper (Le Priol, Piche and Lacoste-Julien, UAI 2018) "
        "and judge its claims by the numbers. Every run is stored as a CSV file when it is done; "
        "the same command goes on where an earlier one ended. Figures (PNG and SVG), tables (CSV) "
        "and verdicts.md are written beside them.",
        epilog="Text corpora are found in the folder SDCASTRUCT_DATA or downloaded; without them "
        "only OCR is run. Example:  sdcastruct reproduce sampling --quick",
    )
    reproduce.add_argument(
        "names", nargs="*", metavar="NAME", help="experiments (see --list), or 'all'"
    )
    reproduce.add_argument("--list", action="store_true", help="list the experiments")
    reproduce.add_argument(
        "--quick",
        action="store_true",
        help=f"on {QUICK.size} sequences of each task: minutes instead of hours, and verdicts "
        "that say little about the paper",
    )
    reproduce.add_argument(
        "--output",
        type=Path,
        metavar="FOLDER",
        help="where results are kept (reproduction, or reproduction-quick)",
    )
    reproduce.add_argument(
        "--tasks", nargs="+", choices=ALL, default=ALL, help="run only on these tasks"
    )
    reproduce.add_argument(
        "--wsj",
        type=Path,
        metavar="FOLDER",
        help="your licensed Wall Street Journal, folders 00 to 24, for POS; without it POS is the "
        "tag column of CoNLL-2000",
    )
    reproduce.set_defaults(run=run_reproduce)


def run_reproduce(options):
    """Run experiments, draw figures and print verdicts."""
    if options.list:
        for name, experiment in EXPERIMENTS.items():
            print(f"{name:15s} {experiment.title} ({experiment.source})")
        return 0
    names = _chosen(options.names)
    if options.wsj is not None and not options.wsj.is_dir():
        raise ValueError(f"--wsj {options.wsj}: expected a folder with the sections 00 to 24")
    settings = QUICK if options.quick else Settings()
    output = options.output or Path("reproduction-quick" if options.quick else "reproduction")
    try:
        reproduce(names, output, settings, options.tasks, options.wsj)
    except KeyboardInterrupt:
        print(f"sdcastruct: interrupted, the same command goes on from {output}", file=sys.stderr)
        return 130
    return 0


def _chosen(names):
    known = ", ".join(EXPERIMENTS)
    if not names:
        raise ValueError(f"reproduce: expected the name of an experiment: {known}, or all")
    for name in names:
        if name != "all" and name not in EXPERIMENTS:
            raise ValueError(f"reproduce {name}: expected one of {known}, or all")
    return tuple(EXPERIMENTS) if "all" in names else tuple(dict.fromkeys(names))


def reproduce(names, output, settings, chosen_tasks=ALL, wsj=None):
    """Do what is missing for experiments, write all results and print the verdicts.

    Parameters
    ----------
    names : sequence of str
        Keys of ``EXPERIMENTS``.
    output : str or Path
        Folder for everything that is written.
    settings : Settings
    chosen_tasks : sequence of str
        Do missing runs of these tasks only; what is there of others is shown as well.
    wsj : str or Path, optional
        Folder of the Wall Street Journal, for POS.
    """
    laboratory = Laboratory(Store(output), settings, wsj)
    laboratory.do(laboratory.plan([EXPERIMENTS[name] for name in names], chosen_tasks))
    for task, reason in laboratory.unavailable.items():
        print(f"{task} is not run: {reason}", file=sys.stderr)
    for name in names:
        _write(EXPERIMENTS[name], laboratory.collect(EXPERIMENTS[name]), Path(output), name)
    for name in names:
        print(_heading(name), _verdicts(name, laboratory), sep="\n\n", end="\n\n")
    path = Path(output, "verdicts.md")
    path.write_text(_page(settings, laboratory), encoding="utf-8")
    print(f"written to {output}: figures, tables, runs, and the verdicts in {path}")


def _write(experiment, runs, output, name):
    """Write the table and the figures of an experiment."""
    if not runs:
        return
    lines = {**experiment.lines, **experiment.optional}
    tables.write(output / f"{name}.csv", experiment.table(runs, lines))
    for stem, draw in experiment.figures.items():
        figures.save(draw(runs, lines), output / stem)


def _page(settings, laboratory):
    """Return all that is known of all experiments, with figures, as Markdown."""
    size = "all sequences" if settings.size is None else f"{settings.size} sequences of each task"
    parts = [
        "# Verdicts",
        f"By sdcastruct {sdcastruct.__version__} on {size}, lambda = 1/n. Runs are compared by "
        f"what they need to get the primal within {settings.precision:g} of the optimum; a pass is "
        "n updates. Each run has one seed.",
    ]
    for name, experiment in EXPERIMENTS.items():
        parts += [_heading(name), _verdicts(name, laboratory)]
        if laboratory.collect(experiment):
            parts += [f"![{stem}]({stem}.png)" for stem in experiment.figures]
    return "\n\n".join(parts) + "\n"


def _heading(name):
    return f"## {name}: {EXPERIMENTS[name].title}"


def _verdicts(name, laboratory):
    """Return the verdicts of an experiment; of Table 1, which claims nothing, what differs."""
    experiment = EXPERIMENTS[name]
    runs = laboratory.collect(experiment)
    if not runs:
        return "Not run."
    lines = [claim.verdict(runs) for claim in experiment.claims] or tables.differences(runs)
    bullets = "\n".join(f"- {line}" for line in lines)
    if experiment.claims:
        return bullets
    return f"{tables.markdown(experiment.table(runs, experiment.lines))}\n\n{bullets}"
