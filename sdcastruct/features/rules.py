"""Rules that label sequences obey."""


def iob2_rules(labels):
    """Return the transitions that IOB2 forbids: to I-X from anything but B-X and I-X.

    Parameters
    ----------
    labels : list of str

    Returns
    -------
    list of (from label, to label)
        None stands for the beginning of a sequence.
    """
    return [
        (before, label)
        for label in labels
        if str(label).startswith("I-")
        for before in (None, *labels)
        if before not in (label, "B-" + label[2:])
    ]


def check_transitions(codes, forbidden, classes):
    """Check that the given labels have no forbidden transition."""
    forbidden = set(forbidden or ())
    for i, sequence in enumerate(codes if forbidden else ()):
        sequence = sequence.tolist()
        for t, pair in enumerate(zip([None, *sequence], sequence, strict=False)):
            if pair in forbidden:
                before, after = (None if k is None else classes[k] for k in pair)
                raise ValueError(f"y[{i}][{t}]: {before!r} -> {after!r} is forbidden")
