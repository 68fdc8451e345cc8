"""What is trained, by name. Runs are shared: each experiment says which of them it looks at."""

from sdcastruct.samplers import Gap, GapImportance, Importance, MaxGap, Uniform
from sdcastruct.solvers import LBFGS, OEG, SAG, SDCA

# The paper's line search (Section 6.2): it begins at 0.5 and ends at a sub-precision of 0.001.
SEARCH = {"subprecision": 1e-3, "start": 0.5, "search_every": 1}
SEED = 0


def sdca(sampler, **options):
    """Return SDCA with the paper's line search, but for these options."""
    return SDCA(sampler, **{**SEARCH, **options}, random_state=SEED)


SOLVERS = {
    # Section 6.4: SDCA and its competitors.
    "SDCA": sdca(Uniform()),
    "SDCA-gap": sdca(Gap(non_uniformity=0.8)),
    "SDCA-gap-fast": SDCA(Gap(non_uniformity=0.8), random_state=SEED),  # our default line search
    "OEG": OEG(Uniform(), random_state=SEED),
    "OEG-gap": OEG(Gap(non_uniformity=0.8), random_state=SEED),
    "SAG-NUS": SAG(sampling="nus", line_search="always", random_state=SEED),
    "SAG-NUS-skip": SAG(sampling="nus", line_search="skip", random_state=SEED),
    # Section 6.2: the line search.
    "SDCA-subprecision-0.5": sdca(Uniform(), subprecision=0.5),
    "SDCA-subprecision-0.1": sdca(Uniform(), subprecision=0.1),
    "SDCA-subprecision-0.01": sdca(Uniform(), subprecision=0.01),
    "SDCA-subprecision-0.0001": sdca(Uniform(), subprecision=1e-4),
    "SDCA-one-newton-step": sdca(Uniform(), max_newton=1),
    "SDCA-one-newton-step-previous": sdca(Uniform(), max_newton=1, start="previous"),
    "SDCA-one-newton-step-quadratic": sdca(Uniform(), max_newton=1, start="quadratic"),
    "SDCA-start-previous": sdca(Uniform(), start="previous"),
    "SDCA-start-quadratic": sdca(Uniform(), start="quadratic"),
    # Section 6.3: the sampling schemes and the share of non-uniform draws.
    "SDCA-importance": sdca(Importance(non_uniformity=0.8)),
    "SDCA-gap-importance": sdca(GapImportance(non_uniformity=0.8)),
    "SDCA-max-gap": sdca(MaxGap(non_uniformity=0.8)),
    "SDCA-gap-0.2": sdca(Gap(non_uniformity=0.2)),
    "SDCA-gap-0.4": sdca(Gap(non_uniformity=0.4)),
    "SDCA-gap-0.6": sdca(Gap(non_uniformity=0.6)),
    "SDCA-gap-1.0": sdca(Gap(non_uniformity=1.0)),
    # Appendix A.1: the initial point epsilon * uniform + (1 - epsilon) * truth.
    "SDCA-gap-epsilon-1": sdca(Gap(non_uniformity=0.8), epsilon=1.0),
    "SDCA-gap-epsilon-1e-1": sdca(Gap(non_uniformity=0.8), epsilon=1e-1),
    "SDCA-gap-epsilon-1e-2": sdca(Gap(non_uniformity=0.8), epsilon=1e-2),
    "SDCA-gap-epsilon-1e-3": sdca(Gap(non_uniformity=0.8), epsilon=1e-3),
    "SDCA-gap-epsilon-1e-8": sdca(Gap(non_uniformity=0.8), epsilon=1e-8),
}

# The optimum of a task is what these two agree on: {name: (solver, relative gap to certify)}.
REFERENCES = {
    "optimum-SDCA": (SDCA(random_state=SEED), 1e-9),
    "optimum-LBFGS": (LBFGS(memory=30), 1e-8),
}
AGREEMENT = 1e-8

# CRFsuite on the same problem, where python-crfsuite is installed: {name: algorithm}.
CRFSUITE = {"CRFsuite-LBFGS": "lbfgs", "CRFsuite-SGD": "l2sgd"}
