"""A dev set: how good an estimator is while it is trained."""

import numpy as np

from sdcastruct.features.checks import check_sequences


class DevSet:
    """Callback of `solve`: accuracy after every epoch, and the best weights so far."""

    def __init__(self, crf, X, y, patience):
        self.crf, self.patience = crf, patience
        self.y = check_sequences("y_dev", y)
        crf.coef_ = np.zeros(crf.model_.dim)  # so that it can read the sequences
        self.rows = crf._transform(X)
        self.accuracies, self.best = [], None

    def __call__(self, row):
        self.crf.coef_ = row.w
        self.accuracies.append(self.crf.score(self.rows, self.y))
        if self.best is None or self.accuracies[-1] > max(self.accuracies[:-1]):
            self.best, self.best_epoch = row.w, len(self.accuracies)
        return self.patience is not None and (
            len(self.accuracies) - self.best_epoch >= self.patience
        )
