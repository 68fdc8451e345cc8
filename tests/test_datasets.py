"""The data sets are the published ones; templates and labels say what they should."""

import hashlib
import os
import sys
import threading
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdcastruct.datasets import fetch, load_conll2000, load_conll2002, load_ocr, load_pos
from sdcastruct.datasets.text import word_shape
from sdcastruct.features import SequenceLabelEncoder, Vectorizer, apply_templates, template_name
from sdcastruct.features.templates import CHUNKING

needs_corpora = pytest.mark.skipif(
    "SDCASTRUCT_DATA" not in os.environ, reason="SDCASTRUCT_DATA names no folder with the corpora"
)


@pytest.fixture(scope="module")
def ocr():
    return load_ocr()


@pytest.fixture(scope="module")
def chunking():
    return load_conll2000()


class TestOCR:
    def test_words_and_letters(self, ocr):
        assert len(ocr.X) == len(ocr.y) == len(ocr.folds) == 6877
        assert sum(map(len, ocr.y)) == 52152
        assert [x.shape for x in ocr.X] == [(len(y), 128) for y in ocr.y]

    def test_pixels_are_binary_floats(self, ocr):
        pixels = np.concatenate(ocr.X)
        assert pixels.dtype == np.float64
        assert np.array_equal(np.unique(pixels), [0, 1])

    def test_labels_are_letters(self, ocr):
        labels = np.concatenate(ocr.y)
        assert np.issubdtype(labels.dtype, np.integer)
        assert np.array_equal(np.unique(labels), np.arange(26))
        assert ocr.y[0].tolist() == [14, 12, 12, 0, 13, 3, 8, 13, 6]
        assert "".join(ocr.classes[ocr.y[0]]) == "ommanding"

    def test_ten_folds(self, ocr):
        counts = [626, 704, 684, 698, 693, 651, 739, 717, 690, 675]
        assert np.bincount(ocr.folds).tolist() == counts

    def test_pixels_belong_to_their_letters(self, ocr):
        """A mispacked image would leave the class means of the two halves of the data unalike."""
        pixels, labels = np.concatenate(ocr.X), np.concatenate(ocr.y)
        half = np.arange(len(labels)) % 2 == 0
        means = [
            np.array([pixels[part & (labels == k)].mean(axis=0) for k in range(26)])
            for part in (half, ~half)
        ]
        distances = np.linalg.norm(means[0][:, None] - means[1][None], axis=2)
        assert np.array_equal(distances.argmin(axis=1), np.arange(26))


@needs_corpora
class TestCorpora:
    def test_conll2000_train(self, chunking):
        assert len(chunking.X) == len(chunking.y) == len(chunking.tokens) == 8936
        assert sum(map(len, chunking.X)) == 211727
        assert len(set().union(*chunking.y)) == 22
        assert chunking.tokens[0][0] == ("Confidence", "NN", "B-NP")

    def test_conll2000_attributes(self, chunking):
        sizes = {len(token) for x in chunking.X for token in x[2:-2]}
        assert sizes == {19}
        assert len(Vectorizer(min_freq=3).fit(chunking.X).attributes_) == 75287

    def test_conll2000_test(self):
        test = load_conll2000(split="test")
        assert len(test.X) == 2012
        assert sum(map(len, test.y)) == 47377

    @pytest.mark.parametrize(
        ("language", "split", "sentences", "tokens"),
        [
            ("dutch", "train", 15806, 202931),
            ("dutch", "test", 5195, 68994),
            ("spanish", "train", 8323, 264715),
            ("spanish", "testa", 1915, 52923),
        ],
    )
    def test_conll2002(self, language, split, sentences, tokens):
        entities = load_conll2002(language, split)
        assert len(entities.X) == sentences
        assert sum(map(len, entities.X)) == sum(map(len, entities.y)) == tokens
        assert len(set().union(*entities.y)) == 9
        assert {len(token) for x in entities.tokens for token in x} == {3}
        assert max(len(token) for x in entities.X for token in x) == 20

    def test_test_is_testb(self):
        assert load_conll2002(split="test").tokens == load_conll2002(split="testb").tokens

    def test_accents_are_decoded(self):
        words = {token[0] for x in load_conll2002("spanish", "testa").tokens for token in x}
        assert "España" in words

    def test_pos(self, chunking):
        pos = load_pos()
        assert pos.y == [[token[1] for token in x] for x in chunking.tokens]
        assert len(set().union(*pos.y)) == 44
        assert max(len(token) for x in pos.X for token in x) == 13
        assert not any(attribute.startswith("pos") for token in pos.X[0] for attribute in token)

    def test_the_trees_of_the_free_part_of_the_treebank(self, tmp_path):
        archive = Path(os.environ["SDCASTRUCT_DATA"]) / "treebank.zip"
        if not archive.is_file():
            pytest.skip("SDCASTRUCT_DATA has no treebank.zip")
        with zipfile.ZipFile(archive) as corpus:
            corpus.extractall(tmp_path)
        pos = load_pos(path=tmp_path / "treebank" / "combined")
        assert len(pos.X) == len(pos.y) == 3914
        assert sum(map(len, pos.y)) == 94084
        assert len(set().union(*pos.y)) == 45
        tagged = load_pos(path=tmp_path / "treebank" / "tagged")
        assert len(tagged.X) == pytest.approx(3914, rel=0.01)


class TestArguments:
    @pytest.mark.parametrize("load", [load_conll2000, load_pos])
    def test_unknown_split(self, load):
        with pytest.raises(ValueError, match="split is 'dev', expected one of 'train', 'test'"):
            load(split="dev")

    def test_unknown_part(self):
        with pytest.raises(ValueError, match="split is 'dev', expected one of 'train', 'testa'"):
            load_conll2002(split="dev")

    def test_unknown_language(self):
        with pytest.raises(ValueError, match=r"language is 'latin', .* 'dutch', 'spanish'"):
            load_conll2002("latin")


class TestTreebank:
    """Small files in the formats of the Penn Treebank and of CoNLL."""

    TREES = r"""
( (S (NP-SBJ (DT The) (NN cat) )
     (VP (VBD sat) (NP (-NONE- *T*-1) )) (. .) ))
( (S (NP (CD 1\/2) ) (VP (VBZ is) (VBG|JJ boring) ) (. .) ('' '') ))
"""
    TAGGED = r"""
======================================

[ The/DT cat/NN ]
sat/VBD

./.

[ 1\/2/CD ]
is/VBZ boring/VBG|JJ ./.

''/''
"""
    COLUMNS = "The DT\ncat NN\nsat VBD\n. .\n\n1/2 CD\nis VBZ\nboring VBG\n. .\n'' ''\n"

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("wsj.mrg", TREES),
            ("wsj.pos", TAGGED),
            ("wsj.tagged", TAGGED),
            ("wsj.txt", COLUMNS),
            ("wsj", COLUMNS),
        ],
        ids=lambda value: value if value.startswith("wsj") else "",
    )
    def test_formats(self, tmp_path, name, content):
        (tmp_path / name).write_text(content)
        pos = load_pos(path=tmp_path / name)
        assert pos.tokens == [
            [("The", "DT"), ("cat", "NN"), ("sat", "VBD"), (".", ".")],
            [("1/2", "CD"), ("is", "VBZ"), ("boring", "VBG"), (".", "."), ("''", "''")],
        ]
        assert pos.y == [["DT", "NN", "VBD", "."], ["CD", "VBZ", "VBG", ".", "''"]]
        assert "w[-1]|w[0]=The|cat" in pos.X[0][1]
        assert "2 sentences, 9 tokens and 8 labels" in pos.DESCR

    def test_folders_and_lists(self, tmp_path):
        for section in ("00", "01", "02"):
            (tmp_path / section).mkdir()
            tree = f"( (S (NN word{section}) (. .)) )"
            (tmp_path / section / "a.mrg").write_text(tree)
            (tmp_path / section / "readme.txt").write_text("Not a tree.")
        words = [sentence[0][0] for sentence in load_pos(path=tmp_path).tokens]
        assert words == ["word00", "word01", "word02"]
        chosen = load_pos(path=[tmp_path / "02", str(tmp_path / "00" / "a.mrg")]).tokens
        assert [sentence[0][0] for sentence in chosen] == ["word02", "word00"]

    def test_path_or_split(self, tmp_path):
        with pytest.raises(ValueError, match=r"split is 'test' and path is .*, expected one of"):
            load_pos("test", path=tmp_path)

    def test_nothing_there(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"nowhere'?: expected an existing file"):
            load_pos(path=str(tmp_path / "nowhere"))
        with pytest.raises(ValueError, match=r"path=\[\]: expected at least one"):
            load_pos(path=[])

    @pytest.mark.parametrize(
        ("names", "found"), [([], "no"), (["a.mrg", "a.pos"], ".mrg and .pos")]
    )
    def test_folder_without_files_of_one_kind(self, tmp_path, names, found):
        for name in names:
            (tmp_path / name).touch()
        with pytest.raises(ValueError, match=f"has {found} files, expected files of one kind"):
            load_pos(path=tmp_path)

    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            ("a.mrg", "( (S (NN word) )", r"a\.mrg has parentheses that do not match"),
            ("a.mrg", "(S (NN word) ) )", r"a\.mrg has parentheses that do not match"),
            ("a.mrg", "word/NN ./.", r"a\.mrg has no sentences"),
            ("a.pos", "word/NN .", r"a\.pos has '\.', expected tokens word/TAG"),
            ("a.pos", "word/ ./.", r"a\.pos has 'word/', expected tokens word/TAG"),
            ("a.txt", "word NN\n. . O\n", r"line 2: 3 columns found, expected 2"),
            ("a.mrg", "", r"a\.mrg has no sentences"),
            ("a.pos", "", r"a\.pos has no sentences"),
            ("a.txt", "", r"a\.txt has no sentences"),
        ],
    )
    def test_files_that_are_not_what_they_seem(self, tmp_path, name, content, message):
        (tmp_path / name).write_text(content)
        with pytest.raises(ValueError, match=message):
            load_pos(path=tmp_path / name)


class TestFetch:
    """Where an archive comes from; the archive here is a small file with a known checksum."""

    NAME, CONTENT = "corpus.zip", b"the corpus"
    SHA256 = hashlib.sha256(CONTENT).hexdigest()

    @pytest.fixture(autouse=True)
    def known(self, monkeypatch, tmp_path):
        monkeypatch.setitem(fetch.SHA256, self.NAME, self.SHA256)
        self.folder = tmp_path / "data"
        self.folder.mkdir()
        monkeypatch.setenv("SDCASTRUCT_DATA", str(self.folder))

    @pytest.fixture
    def cache(self, monkeypatch, tmp_path):
        pooch = pytest.importorskip("pooch")
        monkeypatch.setattr(pooch, "os_cache", lambda project: tmp_path / "cache")
        return tmp_path / "cache"

    @pytest.fixture
    def server(self, monkeypatch, tmp_path):
        """Serve a folder in the place of the public source."""

        class Quiet(SimpleHTTPRequestHandler):
            def log_message(self, *args):
                pass

        public = tmp_path / "public"
        public.mkdir()
        with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=public)) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            monkeypatch.setattr(fetch, "SOURCE", f"http://127.0.0.1:{server.server_port}/")
            monkeypatch.setenv("NO_PROXY", "127.0.0.1")
            yield public
            server.shutdown()
            thread.join()

    def test_folder_comes_first(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "pooch", None)
        (self.folder / self.NAME).write_bytes(self.CONTENT)
        assert fetch.fetch(self.NAME) == self.folder / self.NAME

    def test_corrupt_file(self):
        (self.folder / self.NAME).write_bytes(b"something else")
        found = hashlib.sha256(b"something else").hexdigest()
        with pytest.raises(ValueError, match=f"{self.NAME} .*{self.SHA256}, found {found}"):
            fetch.fetch(self.NAME)

    def test_folder_does_not_exist(self, monkeypatch, tmp_path):
        monkeypatch.setenv("SDCASTRUCT_DATA", str(tmp_path / "nowhere"))
        with pytest.raises(FileNotFoundError, match=r"nowhere.*expected an existing folder"):
            fetch.fetch(self.NAME)

    def test_pooch_is_missing(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "pooch", None)
        with pytest.raises(
            ImportError, match=rf"{self.NAME} is not in SDCASTRUCT_DATA.*sdcastruct\[data\]"
        ):
            fetch.fetch(self.NAME)

    def test_download_then_cache(self, cache, server, capfd):
        (server / self.NAME).write_bytes(self.CONTENT)
        path = fetch.fetch(self.NAME)
        assert path == cache / self.NAME
        assert path.read_bytes() == self.CONTENT
        assert "100%" in capfd.readouterr().err
        (server / self.NAME).unlink()
        assert fetch.fetch(self.NAME) == path

    def test_download_of_another_file(self, cache, server):
        (server / self.NAME).write_bytes(b"something else")
        with pytest.raises(ValueError, match=self.SHA256):
            fetch.fetch(self.NAME)

    @pytest.mark.usefixtures("cache", "server")
    def test_download_fails(self):
        with pytest.raises(FileNotFoundError, match=rf"{self.NAME} is not in .*failed \(404"):
            fetch.fetch(self.NAME)


class TestTemplates:
    def test_names_and_borders(self):
        bigram = (("w", -1), ("w", 0))
        sentence = {"w": ["The", "cat"]}
        assert template_name(bigram) == "w[-1]|w[0]"
        assert apply_templates([sentence], [(("w", 0),), bigram]) == [
            [["w[0]=The"], ["w[0]=cat", "w[-1]|w[0]=The|cat"]]
        ]

    @given(st.integers(min_value=1, max_value=8))
    def test_a_template_speaks_where_its_offsets_fit(self, length):
        sentence = {"w": list(map(str, range(length))), "pos": list(map(str, range(length)))}
        (tokens,) = apply_templates([sentence], CHUNKING)
        for t, attributes in enumerate(tokens):
            fitting = [c for c in CHUNKING if all(0 <= t + offset < length for _, offset in c)]
            assert attributes == [
                f"{template_name(c)}={'|'.join(str(t + offset) for _, offset in c)}"
                for c in fitting
            ]

    @pytest.mark.parametrize(
        ("word", "shape"), [("McCoy's", "XxXx'x"), ("1999", "0"), ("U.S.", "X.X."), ("--", "-")]
    )
    def test_word_shape(self, word, shape):
        assert word_shape(word) == shape


@given(st.lists(st.lists(st.sampled_from(["O", "B-NP", "I-NP"]), min_size=1), min_size=1))
def test_labels_survive_the_round_trip(y):
    encoder = SequenceLabelEncoder()
    codes = encoder.fit_transform(y)
    assert [len(sequence) for sequence in codes] == [len(labels) for labels in y]
    assert encoder.inverse_transform(codes) == y
    assert np.array_equal(np.unique(np.concatenate(codes)), np.arange(len(encoder.classes_)))


def test_unseen_label():
    with pytest.raises(ValueError, match=r"y\[0\] has the label .* expected one of"):
        SequenceLabelEncoder().fit([["O"]]).transform([["B-NP"]])
