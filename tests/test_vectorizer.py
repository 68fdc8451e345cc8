"""Items say what python-crfsuite takes them to say; matrices say the same as the items."""

import pickle
from collections import Counter, UserDict
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.sparse import vstack
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from sdcastruct.features import Vectorizer, Vocabulary
from sdcastruct.models import ChainModel

# Few letters and the separator, so that names meet; python-crfsuite cuts names at "\0" to show them
short = st.text("ab:é", max_size=3)
any_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5)
encoded = short.map(str.encode)
names = short | any_text | encoded
name_lists = st.lists(names, max_size=4)
name_sets = st.sets(names, max_size=4)
# Eighths: their sums are exact in any order.
numbers = st.integers(-40, 40).flatmap(lambda n: st.sampled_from([n, n / 8, np.float32(n), n > 0]))
dicts = st.recursive(
    st.dictionaries(names, numbers | names | name_lists | name_sets, max_size=4),
    lambda nested: st.dictionaries(names, numbers | names | nested, max_size=3),
    max_leaves=4,
)
items = name_lists | name_lists.map(tuple) | name_sets | dicts
corpora = st.lists(st.lists(items, min_size=1, max_size=4), min_size=1, max_size=4)


def decoded(name):
    return name.decode() if isinstance(name, bytes) else name


def mentions(item):
    """Return the (attribute, value) pairs of an item in order, duplicates included."""
    if not isinstance(item, dict):
        return [(decoded(name), 1.0) for name in item]
    pairs = []
    for key, value in item.items():
        name = decoded(key)
        if isinstance(value, str | bytes):
            pairs.append((f"{name}:{decoded(value)}", 1.0))
        elif isinstance(value, dict | list | tuple | set | frozenset):
            pairs += [(f"{name}:{inner}", number) for inner, number in mentions(value)]
        else:
            pairs.append((name, float(value)))
    return pairs


def totals(item):
    """Return what an item adds up to, {attribute: value}."""
    summed = Counter()
    for name, value in mentions(item):
        summed[name] += value
    return dict(summed)


def as_dicts(vectorizer, matrix):
    """Return the rows of a matrix as {attribute: value}."""
    return [
        {vectorizer.attributes_[a]: v for a, v in zip(row.indices, row.data, strict=True)}
        for row in (matrix[[t]] for t in range(matrix.shape[0]))
    ]


class TestItems:
    @given(items)
    @example({"a": {"b": {"c": 2.5}, "d": ["x", "y"], b"e": b"z"}, "": "", "zero": False})
    def test_mentions_are_those_of_python_crfsuite(self, item):
        """The dict that python-crfsuite shows holds the last of several mentions."""
        pycrfsuite = pytest.importorskip("pycrfsuite")
        assert pycrfsuite.ItemSequence([item]).items() == [dict(mentions(item))]

    def test_python_crfsuite_adds_mentions_up(self, tmp_path):
        """What its item sequence does not show, its scores do."""
        pycrfsuite = pytest.importorskip("pycrfsuite")
        trainer = pycrfsuite.Trainer(verbose=False)
        trainer.append([["a"], ["b"], ["a", "b"]], ["A", "B", "B"])
        model = str(tmp_path / "model")
        trainer.train(model)
        tagger = pycrfsuite.Tagger()
        tagger.open(model)

        def probability(item):
            tagger.set([item])
            return tagger.marginal("A", 0)

        assert probability(["a", "a"]) == probability({"a": 2.0}) != probability(["a"])

    @given(corpora)
    @example([[["a", "b", "a"], {"a:b": 1, "a": {"b": -1}}]])
    def test_rows_are_what_the_items_add_up_to(self, X):
        vectorizer = Vectorizer()
        for x, matrix in zip(X, vectorizer.fit_transform(X), strict=True):
            expected = [{a: v for a, v in totals(item).items() if v} for item in x]
            assert as_dicts(vectorizer, matrix) == expected

    @given(corpora, st.integers(min_value=1, max_value=3))
    def test_attributes_are_the_frequent_ones_in_order(self, X, min_freq):
        vectorizer = Vectorizer(min_freq=min_freq)
        matrices = vectorizer.fit_transform(X)
        frequency = Counter(name for x in X for item in x for name, _ in mentions(item))
        assert vectorizer.attributes_ == [a for a, n in frequency.items() if n >= min_freq]
        for x, matrix in zip(X, matrices, strict=True):
            assert matrix.shape == (len(x), len(vectorizer.attributes_))
            for item, row in zip(x, matrix.toarray(), strict=True):
                assert row.tolist() == [totals(item).get(a, 0) for a in vectorizer.attributes_]

    @pytest.mark.parametrize(
        ("item", "expected"),
        [
            (
                {"a": np.float64(0.5), "b": np.int8(3), "c": np.bool_(True)},
                {"a": 0.5, "b": 3, "c": 1},
            ),
            ({"a": np.str_("x"), "b": Decimal("1.5")}, {"a:x": 1, "b": 1.5}),
            ({"a": ("x", "y"), "b": frozenset("z")}, {"a:x": 1, "a:y": 1, "b:z": 1}),
            (Counter("aab"), {"a": 2, "b": 1}),
            (np.array(["x", "y"]), {"x": 1, "y": 1}),
            (["a\0b", "a"], {"a\0b": 1, "a": 1}),
            ({"a": {}, "b": []}, {}),
        ],
    )
    def test_other_types(self, item, expected):
        vectorizer = Vectorizer()
        (matrix,) = vectorizer.fit_transform([[item]])
        assert as_dicts(vectorizer, matrix) == [expected]

    def test_zero_has_a_column_but_no_entry(self):
        vectorizer = Vectorizer()
        (matrix,) = vectorizer.fit_transform([[{"a": 0, "b": False, "c": 1}]])
        assert vectorizer.attributes_ == ["a", "b", "c"]
        assert matrix.indices.tolist() == [2]


class TestMatrices:
    @given(corpora)
    def test_layout(self, X):
        for matrix in Vectorizer().fit_transform(X):
            assert matrix.format == "csr"
            assert matrix.dtype == np.float64
            assert matrix.indices.dtype == matrix.indptr.dtype == np.int32
            assert matrix.indptr[0] == 0
            assert matrix.indptr[-1] == len(matrix.data) == len(matrix.indices)
            matrix.check_format(full_check=True)
            for row in np.split(matrix.indices, matrix.indptr[1:-1]):
                assert np.all(np.diff(row) > 0)

    @given(corpora, st.integers(min_value=1, max_value=2))
    def test_transform_repeats_fit_transform(self, X, min_freq):
        vectorizer = Vectorizer(min_freq=min_freq)
        fitted = vectorizer.fit_transform(X)
        for first, second in zip(fitted, vectorizer.transform(X), strict=True):
            assert np.array_equal(first.toarray(), second.toarray())

    @given(corpora)
    def test_stacked_is_the_list_in_one(self, X):
        vectorizer = Vectorizer()
        for matrices in (vectorizer.fit_transform(X), vectorizer.transform(X)):
            assert matrices.rows.indices.dtype == matrices.rows.indptr.dtype == np.int32
            assert matrices.lengths.tolist() == list(map(len, X))
            assert np.array_equal(matrices.rows.toarray(), vstack(list(matrices)).toarray())

    def test_sequence_of_matrices(self):
        matrices = Vectorizer().fit_transform([[["a"], ["b"]], [["b"]], [["a"]]])
        assert len(matrices) == 3
        assert matrices[-1].toarray().tolist() == [[1, 0]]
        assert [x.shape[0] for x in matrices[:2]] == [2, 1]
        with pytest.raises(IndexError):
            matrices[3]

    def test_models_take_them_as_they_are(self):
        """Binding stacked rows gives the same problem as binding their list."""
        X = [[["a", "b"], ["b"]], [["a"]]]
        matrices, Y = Vectorizer().fit_transform(X), [[0, 1], [1]]
        model = ChainModel(n_states=2, n_features=2)
        stacked, listed = model.bind(matrices, Y), model.bind(list(matrices), Y)
        assert stacked.fingerprint() == listed.fingerprint()
        with pytest.raises(ValueError, match=r"X has 2 columns, expected 3 \(n_features=3\)"):
            ChainModel(n_states=2, n_features=3).bind(matrices)

    def test_matrices_are_views(self):
        """A corpus of matrices takes no more than the stacked one."""
        first, second = Vectorizer().fit_transform([[["a"], ["b"]], [["a"]]])
        assert first.data.base is second.data.base is not None
        assert first.indices.base is second.indices.base is not None

    def test_unseen_attributes_are_ignored(self):
        vectorizer = Vectorizer().fit([[["a"], {"b": "x"}]])
        (matrix,) = vectorizer.transform([[["c", "b:x", "b"], {"b": ["x", "y"], "a": 0.5}, []]])
        assert matrix.toarray().tolist() == [[0, 1], [0.5, 1], [0, 0]]
        assert vectorizer.attributes_ == ["a", "b:x"]

    def test_empty_items(self):
        (matrix,) = Vectorizer().fit_transform([[[], {}, ["a"], set()]])
        assert matrix.toarray().tolist() == [[0], [0], [1], [0]]
        (nothing,) = Vectorizer().fit_transform([[[], {}]])
        assert nothing.shape == (2, 0)

    def test_no_sequences(self):
        assert Vectorizer().fit([[["a"]]]).transform([])[:] == []

    def test_sequences_may_be_any_iterables(self):
        X = [(["a"], ["b"]), iter([["b"]]), np.array([{"a": 2}], dtype=object)]
        matrices = Vectorizer().fit_transform(iter(X))
        assert matrices.rows.toarray().tolist() == [[1, 0], [0, 1], [0, 1], [2, 0]]
        assert matrices.lengths.tolist() == [2, 1, 1]

    def test_long_rows(self):
        """Far more entries than the items have names at their top."""
        nested = {"a": {"b": list(map(str, range(5000)))}}
        (matrix,) = Vectorizer().fit_transform([[nested, nested]])
        assert np.array_equal(matrix.toarray(), np.ones((2, 5000)))


BAD_ITEMS = [
    ("word", TypeError, "is 'word' of type str, expected a list of attribute names or a dict"),
    (None, TypeError, "is None of type NoneType, expected a list"),
    (3, TypeError, "is 3 of type int, expected a list"),
    (
        UserDict(a=1),
        TypeError,
        "is .* of type UserDict, expected a list of attribute names or a dict",
    ),
    (np.ones(2), TypeError, "is .* of type ndarray, expected a list"),
    ([["a"]], TypeError, r"has \['a'\] of type list as a name, expected a string"),
    (["a", None], TypeError, "has None of type NoneType as a name"),
    ({1: 2.0}, TypeError, "has 1 of type int as a name, expected a string"),
    ({"a": {"b": [1]}}, TypeError, r"\['a'\]\['b'\] has 1 of type int as a name"),
    ({"a": None}, TypeError, r"\['a'\] is None of type NoneType, expected a number, a string"),
    ({"a": 1j}, TypeError, r"\['a'\] is 1j of type complex, expected a number"),
    ({"a": {"b": object}}, TypeError, r"\['a'\]\['b'\] is .* of type type, expected a number"),
    ({"a": float("nan")}, ValueError, r"\['a'\] is nan, expected a finite number"),
    ({"a": {"b": -np.inf}}, ValueError, r"\['a'\]\['b'\] is -inf, expected a finite number"),
    ({"a": 10**400}, ValueError, r"\['a'\] is 1000+\.\.\.0+, expected a finite number"),
    (["\ud800"], ValueError, r"has the name '\\ud800': .*surrogates not allowed"),
    ([b"\xff"], ValueError, r"has the name b'\\xff': .*invalid start byte"),
]


class TestErrors:
    @pytest.mark.parametrize(("item", "error", "message"), BAD_ITEMS)
    def test_bad_item(self, item, error, message):
        X = [[["a"]], [{"x": {"y": 1}}, item]]
        with pytest.raises(error, match=rf"^X\[1\]\[1\] ?{message}"):
            Vectorizer().fit(X)
        with pytest.raises(error, match=r"^X\[1\]\[1\]"):
            Vectorizer().fit([[["a"]]]).transform(X)

    @pytest.mark.parametrize("sequence", ["word", b"word", {"a": 1}, {"a"}, 3, None])
    def test_bad_sequence(self, sequence):
        message = rf"^X\[1\] is .* of type {type(sequence).__name__}, expected a list of items"
        with pytest.raises(TypeError, match=message):
            Vectorizer().fit([[["a"]], sequence])

    @pytest.mark.parametrize("sequence", [[], (), iter([])])
    def test_empty_sequence(self, sequence):
        with pytest.raises(ValueError, match=r"^X\[1\] is empty, expected at least one item"):
            Vectorizer().fit([[["a"]], sequence])

    def test_item_within_itself(self):
        item = {}
        item["a"] = item
        with pytest.raises(ValueError, match=r"^X\[0\]\[0\] is nested more than 100 levels deep"):
            Vectorizer().fit([[item]])

    @pytest.mark.parametrize(
        ("min_freq", "error", "message"),
        [
            (0, ValueError, "min_freq=0: expected at least 1"),
            (1.5, TypeError, "min_freq=1.5: expected an integer"),
        ],
    )
    def test_min_freq(self, min_freq, error, message):
        with pytest.raises(error, match=message):
            Vectorizer(min_freq=min_freq).fit([[["a"]]])

    def test_not_fitted(self):
        vectorizer = Vectorizer()
        assert not hasattr(vectorizer, "attributes_")
        with pytest.raises(NotFittedError):
            vectorizer.transform([[["a"]]])

    def test_a_failed_fit_leaves_the_last_one(self):
        vectorizer = Vectorizer().fit([[["a"]]])
        with pytest.raises(TypeError, match="None"):
            vectorizer.fit([[["b", None]]])
        assert vectorizer.attributes_ == ["a"]


class TestEstimator:
    def test_fitting_again_starts_anew(self):
        vectorizer = Vectorizer().fit([[["a", "b"]]])
        assert vectorizer.attributes_ == ["a", "b"]
        assert vectorizer.fit([[["c"]]]).attributes_ == ["c"]

    def test_clone(self):
        copy = clone(Vectorizer(min_freq=4).fit([[["a"]]]))
        assert copy.min_freq == 4
        assert not hasattr(copy, "vocabulary_")

    def test_feature_names(self):
        found = Vectorizer().fit([[{"w": "cat"}, ["é"]]]).get_feature_names_out()
        assert found.dtype == object
        assert found.tolist() == ["w:cat", "é"]

    @given(corpora)
    def test_pickle(self, X):
        vectorizer = Vectorizer(min_freq=2).fit(X)
        copy = pickle.loads(pickle.dumps(vectorizer))
        assert copy.attributes_ == vectorizer.attributes_
        for first, second in zip(vectorizer.transform(X), copy.transform(X), strict=True):
            assert np.array_equal(first.toarray(), second.toarray())


class TestVocabulary:
    def test_many_attributes(self):
        """The table grows many times over and still finds everything."""
        expected = [f"{n % 7}:{n}" for n in range(20_000)]
        vectorizer = Vectorizer().fit([[expected[:5]], [expected]])
        assert vectorizer.attributes_ == expected
        (rows,) = vectorizer.transform([[[name] for name in expected]])
        assert np.array_equal(rows.indices, np.arange(20_000))
        assert np.array_equal(rows.indptr, np.arange(20_001))

    def test_bytes_held(self):
        """Text, eight bytes of end, at most 24 bytes of slots: no Python object per attribute."""
        vocabulary = Vectorizer().fit([[[f"attribute {n}" for n in range(10_000)]]]).vocabulary_
        text, _ = vocabulary.to_arrays()
        assert vocabulary.nbytes <= text.size + 8 * (len(vocabulary) + 1) + 24 * len(vocabulary)

    @given(st.lists(any_text, unique=True))
    def test_arrays_and_back(self, expected):
        vocabulary = Vectorizer().fit([[expected]]).vocabulary_
        text, lengths = vocabulary.to_arrays()
        assert text.tobytes() == "".join(expected).encode()
        assert Vocabulary.from_arrays(text, lengths).names() == expected

    @pytest.mark.parametrize(
        ("text", "lengths", "message"),
        [
            (b"abc", [1, 1], "lengths do not add up to the 3 bytes of text"),
            (b"abc", [4, -1], "lengths do not add up"),
            (b"aba", [1, 1, 1], "the attribute 'a' twice"),
            ("é".encode(), [1, 1], "unexpected end of data"),
        ],
    )
    def test_arrays_of_something_else(self, text, lengths, message):
        with pytest.raises(ValueError, match=message):
            Vocabulary.from_arrays(np.frombuffer(text, np.uint8), np.array(lengths))

    def test_keep_wants_one_answer_per_attribute(self):
        with pytest.raises(ValueError, match="kept has length 2, expected 0"):
            Vocabulary().keep([True, False])
