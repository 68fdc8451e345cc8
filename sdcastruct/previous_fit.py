"""What an estimator takes over from its previous fit."""

import numpy as np


class PreviousFit:
    """Where an estimator stood before `fit` was called again."""

    def __init__(self, crf):
        self.state, self.classes = crf._state, crf.classes_
        self.attributes, self.tables = crf.attributes_, crf._weight_tables()

    def adapt(self, crf, problem):
        """Return a warm start: the dual point if it fits, else the weights by their names."""
        same = crf.classes_ == self.classes and crf.attributes_ == self.attributes
        if self.state is not None and same and problem.begins_with(self.state.problem):
            return self.state
        attributes, bias, transitions = crf.model_.split_weights(np.zeros(crf.model_.dim))
        columns = {label: k for k, label in enumerate(crf.classes_)}
        rows = {name: a for a, name in enumerate(crf.attributes_)}
        kept = [k for k, label in enumerate(self.classes) if label in columns]
        into = [columns[self.classes[k]] for k in kept]
        known = [a for a, name in enumerate(self.attributes) if name in rows]
        places = [rows[self.attributes[a]] for a in known]
        attributes[np.ix_(places, into)] = self.tables[0][np.ix_(known, kept)]
        bias[:, into] = self.tables[1][:, kept]
        transitions[np.ix_(into, into)] = self.tables[2][np.ix_(kept, kept)]
        return np.concatenate([attributes.ravel(), bias.ravel(), transitions.ravel()])
