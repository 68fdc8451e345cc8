"""What the certificate of a fit proves, in words."""

from decimal import ROUND_CEILING, Context

import numpy as np

from sdcastruct.report.page import facts, join, tag


def certificate(crf):
    primal, dual, gap = crf.primal_objective_, crf.dual_objective_, crf.duality_gap_
    if np.isnan(gap):
        text = "Weights were pruned after training: what is left has no certificate."
        return tag("div", tag("p", text), class_="card open")
    relative = gap / primal if primal > 0 else gap
    claim = f"Within {rounded_up(100 * relative)}% of the best possible objective."
    verdict = f"Tolerance of {crf.tol:g} " + ("certified" if crf.converged_ else "not reached")
    ends = join(
        tag("span", "dual, a lower bound", tag("b", f"{dual:.6f}")),
        tag("span", "primal, these weights", tag("b", f"{primal:.6f}"), class_="end"),
    )
    words = (
        f"The objective of these weights is {primal:.6f}. A full pass over the training sequences "
        f"proves that no weights at all bring it below {dual:.6f}: the optimum lies between dual "
        f"and primal. Their distance, the duality gap, is {gap:.3g}, or {relative:.2e} of the "
        f"primal."
    )
    if not crf.converged_:
        words += " Training ended before the tolerance was reached; the bounds hold all the same."
    objective = (
        "The objective is λ/2 ‖w‖² - 1/n Σ log p(y | x; w) with λ = 1/(C n): the lower, the better."
    )
    return tag(
        "div",
        tag("span", verdict, class_="badge"),
        tag("p", claim, class_="claim"),
        tag("div", tag("div", "the optimum lies here", class_="between"), ends, class_="bracket"),
        tag("p", words),
        tag("p", objective, class_="muted"),
        facts(_work(crf)),
        class_="card" if crf.converged_ else "card open",
    )


def rounded_up(bound):
    """Return a bound with two digits that is still one."""
    return f"{float(Context(prec=2, rounding=ROUND_CEILING).create_decimal_from_float(bound)):g}"


def _work(crf):
    """Return the names and values of what training took."""
    pairs = [("epochs", f"{crf.n_epochs_:,}")]
    if hasattr(crf, "history_"):
        pairs.append(("updates", f"{crf.history_.n_updates[-1]:,}"))
        pairs.append(("oracle calls", f"{crf.history_.n_oracle_calls[-1]:,}"))
        pairs.append(("seconds", f"{crf.history_.seconds[-1]:,.1f}"))
    return pairs
