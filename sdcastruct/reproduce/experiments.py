"""The experiments of the paper, one entry each: what is run, what is drawn, what is claimed."""

from collections.abc import Callable
from dataclasses import dataclass, field

from sdcastruct.reproduce import claims, figures, tables
from sdcastruct.reproduce.claims import ONE_STEP, SCHEMES, SHARES
from sdcastruct.reproduce.runs import LINE_SEARCH_SECONDS
from sdcastruct.reproduce.solvers import REFERENCES
from sdcastruct.reproduce.verdicts import ALL, SPARSE, Claim, ClaimAcrossTasks

NOT_IN_PAPER = "not in the paper"


@dataclass(frozen=True)
class Experiment:
    """One experiment.

    Attributes
    ----------
    title : str
        What it shows.
    source : str
        Where it is in the paper.
    tasks : tuple of str
    lines : dict
        The runs that are drawn, names by labels.
    other_runs : tuple of str
        Further runs that the claims need, by default those that find the optimum.
    optional : dict
        Runs that are drawn if python-crfsuite is installed, names by labels.
    figures : dict
        Functions ``(runs, lines) -> Figure`` by file name.
    table : callable
        Function ``(runs, lines) -> rows``.
    claims : tuple of Claim
    """

    title: str
    source: str
    tasks: tuple = ALL
    lines: dict = field(default_factory=dict)
    other_runs: tuple = tuple(REFERENCES)
    optional: dict = field(default_factory=dict)
    figures: dict = field(default_factory=dict)
    table: Callable = tables.needs
    claims: tuple = ()

    @property
    def runs(self):
        """Names of all runs that must be there, those that others need first."""
        return ("table", *self.other_runs, *self.lines.values())


def along(column):
    """Return a figure of convergence along a column."""
    return lambda runs, lines: figures.convergence(runs, lines, column)


METHODS = {
    "SDCA": "SDCA",
    "SDCA-gap": "SDCA-gap",
    "OEG": "OEG",
    "OEG-gap": "OEG-gap",
    "SAG-NUS": "SAG-NUS",
    "SAG-NUS*": "SAG-NUS-skip",
}

EXPERIMENTS = {
    "table": Experiment(
        title="the four data sets beside the paper's",
        source="Table 1",
        other_runs=(),
        table=tables.data_sets,
    ),
    "optimum": Experiment(
        title="the optimum of each task by L-BFGS and by SDCA",
        source="Section 6.1",
        table=tables.optima,
        claims=(
            Claim("L-BFGS and SDCA agree on the optimum", "Section 6.1", claims.optimum_agrees),
        ),
    ),
    "line-search": Experiment(
        title="how precise the line search must be, and what it costs",
        source="Section 6.2, Figure 8",
        lines={
            **{f"one step from {start}": name for start, name in ONE_STEP.items()},
            "sub-precision 0.5": "SDCA-subprecision-0.5",
            "sub-precision 0.1": "SDCA-subprecision-0.1",
            "sub-precision 0.01": "SDCA-subprecision-0.01",
            "sub-precision 0.001": "SDCA",
            "sub-precision 0.0001": "SDCA-subprecision-0.0001",
        },
        other_runs=(
            *REFERENCES,
            "SDCA-start-previous",
            "SDCA-start-quadratic",
            LINE_SEARCH_SECONDS,
        ),
        figures={"line-search": along("n_updates")},
        claims=(
            Claim(
                "2 Newton iterations on average at a sub-precision of 0.001",
                "Section 6.2",
                claims.two_newton_iterations,
            ),
            Claim(
                "the line search takes about 30 % of the run time",
                "Section 6.2",
                claims.line_search_share,
            ),
            Claim(
                "sub-precisions of 0.01, 0.001 and 0.0001 converge alike",
                "Section 6.2",
                claims.subprecisions_alike,
            ),
            Claim(
                "one Newton step converges as fast as a precise search",
                "Section 6.2",
                claims.one_newton_step_suffices,
                ("OCR", "CONLL", "POS"),
            ),
            Claim(
                "one Newton step fails to converge",
                "Section 6.2",
                claims.one_newton_step_fails,
                ("NER",),
            ),
            Claim(
                "searches that start at 0.5, at the previous step size or at the quadratic "
                "model's maximum converge alike",
                "Section 6.2, footnote",
                claims.starts_alike,
            ),
        ),
    ),
    "sampling": Experiment(
        title="five sampling schemes",
        source="Section 6.3, Figure 2",
        tasks=("OCR",),
        lines=SCHEMES,
        figures={"sampling": along("n_updates")},
        claims=tuple(
            Claim(text, "Section 6.3", judge, ("OCR",))
            for text, judge in (
                ("Gap sampling is the best", claims.gap_sampling_best),
                ("Importance is worse than Uniform", claims.importance_worse_than_uniform),
                ("Gap x importance is worse than Gap", claims.gap_importance_worse_than_gap),
                ("Max fails to converge", claims.max_gap_fails),
            )
        ),
    ),
    "non-uniformity": Experiment(
        title="the share of gap sampling, from none to all",
        source="Section 6.3, Figure 3",
        tasks=("OCR", "CONLL", "NER"),
        lines={f"share {share:g}": name for share, name in SHARES.items()},
        figures={"non-uniformity": along("n_updates")},
        claims=(
            Claim(
                "more gap sampling only helps",
                "Section 6.3",
                claims.more_gap_sampling_helps,
                ("OCR", "CONLL", "NER"),
            ),
            Claim(
                "the gain from a share of 0.8 to 1 is marginal",
                "Section 6.3",
                claims.marginal_beyond_80_percent,
                ("OCR", "CONLL", "NER"),
            ),
        ),
    ),
    "gap-estimate": Experiment(
        title="the estimated against the true duality gap",
        source="Section 6.3, Figure 9",
        tasks=("OCR", "CONLL", "NER"),
        lines={f"share {share:g}": name for share, name in SHARES.items()},
        figures={"gap-estimate": figures.gap_ratio},
        claims=(
            Claim(
                "the estimated gap is always within a factor 2 of the true one",
                "Section 6.3",
                claims.gap_within_factor_2,
                ("OCR", "CONLL", "NER"),
            ),
            Claim(
                "gap sampling underestimates the gap, uniform sampling overestimates it",
                "Figure 9",
                claims.estimate_bias,
                ("OCR", "CONLL", "NER"),
            ),
        ),
    ),
    "comparison": Experiment(
        title="SDCA, OEG and SAG by updates, oracle calls and seconds; CRFsuite by seconds",
        source="Section 6.4, Figures 4 and 6",
        lines={**METHODS, "SDCA-gap, default search": "SDCA-gap-fast"},
        optional={"CRFsuite L-BFGS": "CRFsuite-LBFGS", "CRFsuite SGD": "CRFsuite-SGD"},
        figures={
            "comparison-updates": lambda runs, _: figures.convergence(runs, METHODS),
            "comparison-oracle-calls": lambda runs, _: figures.convergence(
                runs, METHODS, "n_oracle_calls"
            ),
            "comparison-seconds": lambda runs, lines: figures.convergence(
                runs, {**lines, "L-BFGS": "optimum-LBFGS"}, "seconds"
            ),
        },
        claims=(
            Claim(
                "SDCA and OEG need about the same number of updates",
                "Section 6.4",
                claims.sdca_like_oeg,
            ),
            Claim(
                "SDCA-gap needs fewer updates than OEG", "Section 6.4", claims.sdca_gap_beats_oeg
            ),
            Claim(
                "SAG-NUS needs fewer updates than SDCA-gap on dense data",
                "Section 6.4",
                claims.sag_beats_sdca,
                ("OCR",),
            ),
            Claim(
                "SDCA-gap needs fewer updates than SAG-NUS on sparse data",
                "Section 6.4",
                claims.sdca_beats_sag,
                SPARSE,
            ),
            ClaimAcrossTasks(
                "the sparser the data, the fewer updates SDCA-gap needs",
                "Section 6.4",
                claims.sparser_is_faster,
            ),
            Claim(
                "SDCA-gap needs about as many oracle calls as SAG-NUS* on dense data",
                "Section 6.4",
                claims.oracle_calls_like_sag,
                ("OCR",),
            ),
            Claim(
                "SDCA-gap needs far fewer oracle calls than SAG-NUS* on sparse data",
                "Section 6.4",
                claims.fewer_oracle_calls_than_sag,
                SPARSE,
            ),
            Claim("OEG-gap needs fewer updates than OEG", NOT_IN_PAPER, claims.oeg_gap_beats_oeg),
            *(
                Claim(
                    f"SDCA-gap needs fewer CPU seconds than {label}",
                    NOT_IN_PAPER,
                    claims.faster_than(name),
                )
                for label, name in {
                    "OEG": "OEG",
                    "SAG-NUS": "SAG-NUS",
                    "SAG-NUS*": "SAG-NUS-skip",
                    "L-BFGS": "optimum-LBFGS",
                    "CRFsuite's L-BFGS": "CRFsuite-LBFGS",
                    "CRFsuite's SGD": "CRFsuite-SGD",
                }.items()
            ),
        ),
    ),
    "test-error": Experiment(
        title="the error on test data after each epoch",
        source="Section 6.4, Figure 7",
        lines=METHODS,
        figures={"test-error": figures.test_error},
        claims=(
            Claim(
                "all methods end with the same test error",
                "Section 6.4",
                claims.equal_test_errors,
            ),
            Claim(
                "all methods reach it within a few epochs",
                "Section 6.4",
                claims.few_epochs_to_best_error,
            ),
            Claim(
                "over the first epochs SDCA errs like SAG and a bit less than OEG",
                "Section 6.4",
                claims.early_error_below_oeg,
            ),
        ),
    ),
    "initial-point": Experiment(
        title="where the dual point starts: epsilon uniform + (1 - epsilon) truth",
        source="Appendix A.1",
        tasks=("OCR", "CONLL", "NER"),
        lines={
            "epsilon 1 (uniform)": "SDCA-gap-epsilon-1",
            "epsilon 0.1": "SDCA-gap-epsilon-1e-1",
            "epsilon 0.01": "SDCA-gap-epsilon-1e-2",
            "epsilon 0.001": "SDCA-gap-epsilon-1e-3",
            "epsilon 1e-5": "SDCA-gap",
            "epsilon 1e-8": "SDCA-gap-epsilon-1e-8",
        },
        figures={"initial-point": along("n_updates")},
        claims=tuple(
            Claim(text, "Appendix A.1", judge, ("OCR", "CONLL", "NER"))
            for text, judge in (
                ("P(0) is below 100", claims.start_below_100),
                (
                    "at the uniform start the primal is extremely large",
                    claims.uniform_start_is_extreme,
                ),
                ("a start near the truth needs fewer updates", claims.start_matters),
            )
        ),
    ),
}
