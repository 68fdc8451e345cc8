"""The report of a fit: what it says, that it is harmless, and how a browser shows it."""

import importlib
import json
import os
import re
import shutil
from html.parser import HTMLParser

import numpy as np
import pytest
from scipy import sparse

from sdcastruct import CRF, datasets
from sdcastruct.evaluation import evaluate
from sdcastruct.report import write_report
from sdcastruct.report.certificate import rounded_up
from sdcastruct.report.page import Html, join, tag
from sdcastruct.report.suspects import position_names

EVIL = "<script>document.title='broken'</script>"
WORDS = {"B-PER": ["Mr", "Ms", "Dr"], "I-PER": ["Ada", "Bob", "Cy"], "O": ["and", "saw", EVIL]}
SIZES = {"phone": (375, 812), "desktop": (1280, 900)}


def sentences(n, seed):
    """Return words, items and labels: titles go before names."""
    rng = np.random.default_rng(seed)
    words, labels = [], []
    for _ in range(n):
        drawn = (["B-PER", "I-PER"] if rng.random() < 0.5 else ["O"] for _ in range(4))
        labels.append([label for phrase in drawn for label in phrase])
        words.append([WORDS[label][rng.integers(3)] for label in labels[-1]])
    return words, [[{"bias": 1.0, "w": word} for word in sentence] for sentence in words], labels


TOKENS, X, Y = sentences(60, seed=0)
Y[7][1] = "I-PER" if Y[7][1] != "I-PER" else "O"  # the wrong label that the report must find
_, X_TEST, Y_TEST = sentences(20, seed=1)
Y_TEST[0][0] = "B-LOC"


@pytest.fixture(scope="module")
def crf():
    return CRF(C=10, random_state=0).fit(X, Y, X_TEST, Y_TEST)


@pytest.fixture(scope="module")
def loaded(crf, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "m"
    crf.save(path)
    return CRF.load(path)


class Page(HTMLParser):
    """The elements and the text of a page."""

    def __init__(self, path):
        super().__init__()
        self.source = path.read_text(encoding="utf-8")
        self.tags, self.attributes, self.texts = [], [], []
        self.feed(self.source)
        self.text = " ".join(" ".join(self.texts).split())

    def handle_starttag(self, name, attributes):
        self.tags.append(name)
        self.attributes += attributes

    def handle_data(self, data):
        if self.tags[-1:] != ["style"]:
            self.texts.append(data)

    @property
    def sections(self):
        return re.findall(r'<section id="(.*?)">', self.source)


@pytest.fixture
def report(tmp_path):
    """Return a function that writes a report and reads it."""

    def write(*arguments, **options):
        write_report(tmp_path / "report.html", *arguments, **options)
        assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
        return Page(tmp_path / "report.html")

    return write


def test_all_there_is(report, crf):
    page = report(crf, X, Y, X_TEST, Y_TEST, tokens=TOKENS, title="Names")
    assert page.sections == [
        "scores",
        "training",
        "suspects",
        "transitions",
        "attributes",
        "model",
    ]
    assert page.tags.count("svg") == 4
    links = [value for name, value in page.attributes if name == "href" and value in page.source]
    assert {"#" + section for section in page.sections} <= set(links)
    assert "Tolerance of 0.001 certified" in page.text
    assert f"{crf.dual_objective_:.6f}" in page.text
    assert f"{crf.primal_objective_:.6f}" in page.text
    assert f"{crf.duality_gap_ / crf.primal_objective_:.2e} of the primal" in page.text
    for name in crf.get_params():
        assert name in page.text
    for attribute in crf.attributes_:
        assert attribute in page.text
    assert "<strong>10</strong>" in page.source  # C is not its default
    assert "training sequences 60" in page.text


def test_only_an_estimator(report, crf):
    page = report(crf)
    assert page.sections == ["training", "suspects", "transitions", "attributes", "model"]
    assert page.tags.count("svg") == 4
    assert "details" not in page.tags


def test_loaded_models_have_no_history(report, loaded):
    page = report(loaded)
    assert page.sections == ["transitions", "attributes", "model"]
    assert page.tags.count("svg") == 1
    assert "certified" in page.text
    page = report(loaded, X, Y, X_TEST, Y_TEST)
    assert page.sections == ["scores", "suspects", "transitions", "attributes", "model"]
    assert page.tags.count("details") == 20


def test_not_certified(report):
    page = report(CRF(random_state=0, tol=1e-12, max_epochs=1).fit(X, Y))
    assert "Tolerance of 1e-12 not reached" in page.text
    assert "Training ended before the tolerance was reached" in page.text


@pytest.mark.parametrize("relative", [1.2345e-3, 5e-17, 0.5, 0.0, 0.099, 1.01, 123.4])
def test_bounds_are_never_rounded_down(relative):
    shown = float(rounded_up(relative))
    assert relative <= shown <= 1.1 * relative


def test_phrases_are_scored_as_conlleval_does(report, crf):
    page = report(crf, X_test=X_TEST, y_test=Y_TEST)
    scores = evaluate(Y_TEST, crf.predict(X_TEST))
    assert f"F1 of phrases {scores.f1:.2%}" in page.text
    assert f"labels correct {scores.accuracy:.2%}" in page.text
    score = scores.types["PER"]
    numbers = f"{100 * score.precision:.2f} {100 * score.recall:.2f} {100 * score.f1:.2f}"
    assert f"PER {numbers} {score.n_true} {score.n_found} {score.n_correct}" in page.text
    assert re.search(r"B-LOC → \S+ 1 ", page.text)


def test_other_labels_are_scored_one_by_one(report):
    x, y = [np.eye(2), np.eye(2)], [[0, 1], [0, 1]]
    crf = CRF(C=10, random_state=0).fit(x, y)
    assert crf.predict(x) == y
    page = report(crf, X_test=x, y_test=[np.array([0, 1]), np.array([1, 1])])
    assert "labels correct 75.00% sequences correct 50.00%" in page.text
    assert "0 50.00 100.00 66.67 1 2 1" in page.text
    assert "1 100.00 66.67 80.00 3 2 2" in page.text
    assert "1 → 0 1 100.0%" in page.text


def test_suspects_show_the_wrong_label(report, crf):
    assert crf.suspects_[0][0] == 7
    page = report(crf, X, Y, tokens=TOKENS)
    first = page.source.split("<details")[1].split("</details>")[0]
    assert "<b>Sequence 7</b>" in first
    assert f"-log p = {crf.suspects_[0][1]:.2f}" in first
    (found,) = crf.predict(X[7:8])
    p = crf.predict_marginals(X[7:8])[0][1]
    assert found[1] != Y[7][1]
    for kind, label in (("del", Y[7][1]), ("ins", found[1])):
        assert f"<{kind}>{label} {p[label]:.0%}</{kind}>" in first
    words = re.findall(r'class="token.*?"><b>(.*?)</b>', first)
    assert words == [str(join(word)) for word in TOKENS[7]]


@pytest.mark.parametrize(
    ("x", "names"),
    [
        ([["bias", "w=a"], ["bias", "w=b"]], ["w=a", "w=b"]),
        ([{"bias": 1.0, "w": "a"}, {"bias": 1.0, "w": "b"}], ["w:a", "w:b"]),
        ([["w[-1]=a", "w[0]=b"], ["w[-1]=b", "w[0]=c"]], ["w[0]=b", "w[0]=c"]),
        ([["bias"], ["bias"], []], ["bias", "bias", ""]),
        ([["bias"], ["bias"]], ["bias", "bias"]),
        ([["a", "b"]], ["a"]),
        (np.eye(3), [1, 2, 3]),
        (sparse.csr_matrix(np.eye(2)), [1, 2]),
    ],
)
def test_names_of_positions(x, names):
    assert list(position_names(x)) == names


def test_what_goes_in_is_escaped(report):
    evil_y = [[label.replace("PER", EVIL) for label in labels] for labels in Y]
    crf = CRF(random_state=0, class_weight={"O": 2.0}).fit(X, evil_y, X, evil_y)
    page = report(crf, X, evil_y, X, evil_y, tokens=TOKENS, title=EVIL)
    assert "script" not in page.tags
    assert not any(name.startswith("on") for name, _ in page.attributes)
    assert page.text.count(EVIL) > 10
    assert f"w:{EVIL}" in page.text
    assert "http" not in page.source  # nothing is fetched from anywhere


def test_elements():
    assert tag("p", "<", 1, Html("<br>"), class_="a", title='"', id=None) == (
        '<p class="a" title="&quot;">&lt;1<br></p>'
    )


def test_letters_of_the_world(report):
    words = ["名詞", "αρχή", "שם", "🙂", "$a$"]
    data = [[[word] for word in words]], [words]
    crf = CRF(random_state=0).fit(*data)
    page = report(crf, *data, tokens=[[*words[:-1], "half a letter: \ud800"]])
    for word in words:
        assert page.text.count(word) > 3
    assert "half a letter: " in page.text


def test_an_old_report_is_replaced_in_one_step(crf, tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(ValueError, match="trained on 60"):
        write_report(path, crf, X[:-1], Y[:-1])
    assert path.read_text() == "old"
    write_report(str(path), crf)
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_bad_paths_come_before_any_work(tmp_path):
    nowhere = tmp_path / "no" / "report.html"
    with pytest.raises(ValueError, match=r"report.html': there is no folder .*no'"):
        write_report(nowhere, CRF())
    with pytest.raises(ValueError, match="expected a file, this is a folder"):
        write_report(tmp_path, CRF())
    with pytest.raises(TypeError, match="path=3: expected a path"):
        write_report(3, CRF())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"X": X}, "X and y: expected both or neither"),
        ({"y_test": Y}, "X_test and y_test: expected both or neither"),
        ({"X": X, "y": Y[:-1]}, "y has 59 sequences but X has 60"),
        ({"X": X, "y": [Y[0][:-1], *Y[1:]]}, r"y\[0\] has \d entries but X\[0\] has \d"),
        ({"X": X[:5], "y": Y[:5]}, "X has 5 sequences but the CRF was trained on 60"),
        ({"tokens": TOKENS}, "tokens and X: expected both or neither"),
        ({"X": X, "y": Y, "tokens": TOKENS[:-1]}, "X has 60 sequences but tokens has 59"),
        ({"X": X, "y": Y, "tokens": [[], *TOKENS[1:]]}, r"X\[0\] has \d entries but tokens\[0\]"),
    ],
)
def test_bad_data(crf, tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        write_report(tmp_path / "report.html", crf, **options)
    assert not list(tmp_path.iterdir())


def test_bad_estimators(tmp_path):
    with pytest.raises(ValueError, match="not fitted yet"):
        write_report(tmp_path / "report.html", CRF())
    with pytest.raises(TypeError, match="crf='m': expected a CRF"):
        write_report(tmp_path / "report.html", "m")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A headless Chromium that keeps a log of the console and of requests."""
    binary = _program("chromium", "chromium-browser", "google-chrome", "chrome")
    driver = _program("chromedriver")
    webdriver = importlib.import_module("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    switches = (
        "headless=new no-sandbox disable-gpu disable-quic no-first-run hide-scrollbars "
        "disable-background-networking disable-component-update disable-sync disable-dev-shm-usage"
    )
    for switch in [*switches.split(), f"user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument("--" + switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    chromium = webdriver.Chrome(options, webdriver.ChromeService(driver))
    yield chromium
    chromium.quit()


def _program(*names):
    """Return the path of a program; a test without it is skipped, or fails where it must run."""
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        complain = pytest.fail if os.environ.get("SDCASTRUCT_REQUIRE_CHROMIUM") else pytest.skip
        complain(f"{names[0]} is not installed")
    return found


LOOK = """
const boxes = [...document.querySelectorAll("svg")].map(svg => svg.getBoundingClientRect());
const shapes = [...document.querySelectorAll("svg")].map(
    svg => [...svg.querySelectorAll("path, use, text")].filter(
        shape => shape.getBoundingClientRect().width > 0).length);
return {
    title: document.title,
    width: document.documentElement.scrollWidth,
    inner: window.innerWidth,
    figures: boxes.map((box, k) => [box.width, box.height, shapes[k]]),
    outside: [...document.querySelectorAll("main > *, section > *, figure, .card")].filter(
        element => element.getBoundingClientRect().right > window.innerWidth + 0.5).length,
    ids: [...document.querySelectorAll("[id]")].map(element => element.id),
};
"""


def look(browser, path, size):
    """Open a page as on a screen of this size; return what is seen, complaints and requests."""
    width, height = SIZES[size]
    screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == "phone"}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    browser.get_log("performance")
    browser.get_log("browser")
    browser.get(path.as_uri())
    seen = browser.execute_script(LOOK)
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [event for event in events if event["method"] == "Network.requestWillBeSent"]
    requests = [event["params"]["request"]["url"] for event in sent]
    elsewhere = [u for u in requests if u != path.as_uri() and not u.startswith("data:")]
    return seen, browser.get_log("browser"), elsewhere


def letters():
    ocr = datasets.load_ocr()
    words, y = ocr.X[:150], [list(map(str, ocr.classes[labels])) for labels in ocr.y[:150]]
    return CRF(random_state=0, tol=0.1).fit(words, y), words, y, words, y


def fifty_labels():
    data = [[["word" * 30]] * 50] * 2, [[f"LONG-LABEL-{k}" for k in range(50)]] * 2
    return CRF(random_state=0, max_epochs=3).fit(*data), *data, *data


REPORTS = {  # what goes into them, and how many figures come out
    "chunks": (lambda crf, loaded: (crf, X, Y, X_TEST, Y_TEST, TOKENS), 4),
    "letters": (lambda crf, loaded: letters(), 3),
    "fifty labels": (lambda crf, loaded: fifty_labels(), 3),
    "loaded": (lambda crf, loaded: (loaded,), 1),
}


@pytest.fixture(scope="module", params=REPORTS)
def written(request, browser, crf, loaded, tmp_path_factory):
    """A report, and how many figures it has."""
    arguments, n_figures = REPORTS[request.param]
    path = tmp_path_factory.mktemp("reports") / "report.html"
    write_report(path, *arguments(crf, loaded), title=EVIL)
    return path, n_figures


@pytest.mark.parametrize("size", SIZES)
def test_in_a_browser(browser, written, size):
    path, n_figures = written
    seen, complaints, requests = look(browser, path, size)
    assert seen["title"] == EVIL
    assert seen["inner"] == SIZES[size][0]
    assert seen["width"] <= seen["inner"]
    assert seen["outside"] == 0
    assert complaints == requests == []
    assert len(seen["figures"]) == n_figures
    for width, height, n_shapes in seen["figures"]:
        assert width >= 250
        assert height >= 120
        assert n_shapes > 10
    assert len(seen["ids"]) == len(set(seen["ids"]))


def test_the_browser_would_complain(browser, tmp_path):
    path = tmp_path / "bad.html"
    wide = '<div style="width:3000px">wide</div><img src="http://127.0.0.1:9/x.png">'
    path.write_text(f"<!DOCTYPE html><title>bad</title>{wide}<script>undefined.x</script>")
    seen, complaints, requests = look(browser, path, "desktop")
    assert seen["width"] > seen["inner"]
    assert any("undefined" in complaint["message"] for complaint in complaints)
    assert requests == ["http://127.0.0.1:9/x.png"]
