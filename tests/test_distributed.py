"""CoCoA+ on Dask: the same optimum, the same vocabulary, the same certificates as in one process.

Workers are threads here, which start at once; test_distributed_faults has processes.
"""

import gc
import io
import pickle
import subprocess
import sys
import weakref

import dask.bag
import numpy as np
import pytest
from distributed import Client, LocalCluster
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone
from states import samples

from sdcastruct import CRF, CRFLearner, duality
from sdcastruct.distributed import DaskSDCA, bind, from_bag, from_files
from sdcastruct.distributed.changes import Changes
from sdcastruct.distributed.coupling import Coupling
from sdcastruct.features import Vectorizer, load_templates, read_columns
from sdcastruct.models import ChainModel, MulticlassModel
from sdcastruct.samplers import Gap, Sampler, Uniform
from sdcastruct.solvers import SDCA

N = 40
MODEL = ChainModel(n_states=3, n_features=4)
WORDS = ["the", "cat", "saw", "a", "dog", ";", "she", "runs", ".", "is", "Red", "and", "May"]

pytestmark = pytest.mark.usefixtures("time_limit")


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(n_workers=3, processes=False, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


def solver(client, **options):
    return DaskSDCA(client, **{"rounds": 2, "random_state": 0, "timeout": 30.0, **options})


def state(client, lam=0.05, **options):
    return solver(client, **options).init(bind(MODEL, *samples(N)), lam)


def sentences(n, seed=0):
    """Return random rows of words, their parts and labels, some of them rare."""
    rng = np.random.default_rng(seed)
    chosen = [rng.choice(WORDS, rng.integers(1, 7)) for _ in range(n)]
    return [[[w, "X" if w.islower() else "Y", f"L{len(w) % 3}"] for w in ws] for ws in chosen]


def write_shards(folder, n, n_files=4):
    """Write columns, as many sentences a file; return the rows of all."""
    rows = sentences(n)
    for k, part in enumerate(np.array_split(np.arange(n), n_files)):
        lines = ["".join(" ".join(row) + "\n" for row in rows[i]) for i in part]
        (folder / f"shard-{k}.txt").write_text("\n".join(lines))
    return rows


def items_and_labels(rows):
    templates = load_templates("chunking")
    X = templates.extract_all([[row[:-1] for row in sentence] for sentence in rows])
    return X, [[row[-1] for row in sentence] for sentence in rows]


@pytest.mark.parametrize("n_partitions", [1, 2, 3, 5])
def test_the_optimum_is_that_of_one_process(client, n_partitions):
    X, Y = samples(N)
    one = SDCA(random_state=0).solve(MODEL.bind(X, Y), tol=1e-8)
    run = solver(client, n_partitions=n_partitions)
    result = run.solve(bind(MODEL, X, Y), tol=1e-6, max_epochs=400)
    assert result.converged
    assert len(result.state.team.members) == n_partitions
    assert one.dual * (1 - 1e-12) <= result.primal <= one.primal * (1 + 2e-6)
    assert_allclose(result.w, one.w, atol=1e-2)
    assert result.n_updates == N * result.n_epochs
    assert result.history.n_updates[-1] == result.n_updates


def test_the_certificate_is_that_of_the_whole_problem(client):
    X, Y = samples(N)
    result = solver(client).solve(bind(MODEL, X, Y), lam=0.1, max_epochs=3, tol=0)
    assert_allclose(result.primal, duality.primal(MODEL.bind(X, Y), result.w, 0.1), rtol=1e-12)
    assert result.dual <= SDCA(random_state=0).solve(MODEL.bind(X, Y), lam=0.1, tol=1e-9).primal
    assert not result.converged


def test_weights_of_samples_and_another_model(client):
    X, Y = np.random.default_rng(0).normal(size=(30, 4)), np.arange(30) % 3
    weights = 0.5 + np.arange(30) % 2
    model = MulticlassModel(n_states=3, n_features=4)
    one = SDCA(random_state=0).solve(model.bind(X, Y).weighted(weights), tol=1e-6)
    problem = bind(model, X, Y).weighted(weights)
    result = solver(client).solve(problem, tol=1e-6)
    assert_allclose(result.primal, one.primal, rtol=3e-6)


def test_a_run_can_be_repeated_bit_for_bit(client):
    first, second = (solver(client).solve(bind(MODEL, *samples(N)), tol=1e-4) for _ in range(2))
    assert_array_equal(first.w, second.w)
    assert_array_equal(first.history.gap_estimate, second.history.gap_estimate)


def test_rounds_with_safe_coupling_never_lower_the_dual(client):
    run = state(client, n_partitions=4, rounds=4, search_every=1)
    duals = [run.dual]
    for which in range(12):
        run.coupling.value = 4.0
        run._round(which % 4)
        duals.append(run.dual)
    assert (np.diff(duals) >= -1e-12).all()
    assert (run.rounds.ratio <= 4.0 + 1e-9).all()


def test_what_rounds_add_up_is_what_a_full_pass_finds(client):
    run = state(client, rounds=5, search_every=1)
    run.epoch()
    run._round(0)  # its sums follow from where the weights have gone
    kept, dual = run.w, run.dual
    run.certify()
    assert_allclose(kept, run.w, rtol=1e-10, atol=1e-12)
    assert_allclose(dual, run.dual, rtol=1e-6)  # steps may keep entropies in single precision


def test_coupling_too_small_is_saved_by_backing_off(client):
    problem = bind(ChainModel(3, 1), [np.ones((4, 1))] * N, [np.arange(4) % 3] * N)
    options = {"n_partitions": 8, "rounds": 1, "coupling": 0.05}

    def hold(row):
        row.state.coupling.value = 0.05  # whatever was learned

    lost = solver(client, **options).solve(problem, lam=1e-3, max_epochs=40, callback=hold)
    saved = solver(client, **options).solve(problem, lam=1e-3, max_epochs=40)
    assert not lost.converged
    assert lost.state.coupling.n_drops > 3
    assert saved.converged
    assert 1 <= saved.state.coupling.n_drops <= 4
    drops = np.flatnonzero(np.diff(saved.state.rounds.dual) < 0)
    assert (saved.state.rounds.coupling[drops + 2] == 8.0).all()


def test_coupling_follows_the_ratio_and_backs_off():
    coupling = Coupling(8)
    assert coupling.value == 8.0
    for _ in range(100):
        coupling.observe(1.0, 0.0, 1.0, gap=0.1)
    assert coupling.value == pytest.approx(1.2)
    coupling.observe(4.0, 0.0, 1.0, gap=0.1)
    assert coupling.value == pytest.approx(4.8)
    for drops in range(1, 4):
        coupling.observe(1.0, 1.0, 0.9, gap=0.1)
        assert (coupling.value, coupling.floor) == (8.0, 2.0**drops)
    coupling.observe(0.1, 1.0, 0.99999, gap=0.1)
    assert coupling.value == 8.0
    other = Coupling(8)
    other.remember(coupling.memory())
    assert vars(other) == vars(coupling)


def test_only_what_changed_is_sent():
    old = np.arange(10.0)
    new = old.copy()
    new[[2, 7]] = -1.0
    few = Changes.between(old, new)
    assert few.places.tolist() == [2, 7]
    assert few.nbytes == 24
    few.write_to(old)
    assert_array_equal(old, new)
    for known in (None, -new):
        whole = Changes.between(known, new)
        assert whole.places is None
        assert whole.nbytes == 80
        whole.write_to(old)
        assert_array_equal(old, new)
        assert whole.values is not new


def test_ten_million_weights(client):
    A = 2_500_000
    rng = np.random.default_rng(0)
    X = [
        csr_array((np.ones(5), rng.integers(A, size=5), np.arange(6)), shape=(5, A))
        for _ in range(20)
    ]
    Y = [rng.integers(4, size=5) for _ in X]
    model = ChainModel(n_states=4, n_features=A)
    assert model.dim > 10**7
    result = solver(client, rounds=1, n_partitions=2).solve(bind(model, X, Y), tol=1e-2)
    assert result.converged
    rounds = result.state.rounds
    assert rounds.bytes_out.max() + rounds.bytes_in.max() < 20_000  # dense: 320 million


def test_warm_starts(client):
    X, Y = samples(N)
    one = SDCA(random_state=0).solve(MODEL.bind(X, Y), tol=1e-6)
    result = solver(client).solve(bind(MODEL, X, Y), tol=1e-3, warm_start=one)
    assert result.n_epochs <= 3
    assert SDCA(random_state=0).solve(MODEL.bind(X, Y), tol=1e-3, warm_start=result).n_epochs <= 3
    before = result.n_updates
    more = solver(client).solve(result.state.problem, tol=1e-5, resume=result.state)
    assert more.converged
    assert more.state.n_updates > before


def test_checkpoints(client, tmp_path):
    problem, folder = bind(MODEL, *samples(N)), tmp_path / "run"
    straight = solver(client).solve(problem, tol=0, max_epochs=6)
    stop = lambda row: row.epoch == 3  # noqa: E731
    solver(client).solve(problem, tol=0, max_epochs=6, checkpoint=folder, callback=stop)
    result = solver(client).solve(problem, tol=0, max_epochs=6, checkpoint=folder)
    assert_array_equal(result.w, straight.w)
    assert result.history.epoch.tolist() == list(range(7))
    with pytest.raises(ValueError, match="another run: its lam is"):
        solver(client).solve(problem, lam=0.5, checkpoint=folder)
    with pytest.raises(ValueError, match="another run: its n_partitions is 3, expected 2"):
        solver(client, n_partitions=2).solve(problem, checkpoint=folder)
    other = bind(MODEL, *samples(N, seed=1))
    with pytest.raises(ValueError, match=r"partition 0 .* another run: its problem is"):
        solver(client).solve(other, checkpoint=folder)


class Forgetful(Sampler):
    """A sampler that cannot be saved."""

    def __init__(self):
        super().__init__()
        self.last = 0

    def draw(self, rng):
        return 0


def test_a_run_that_cannot_be_saved_says_so_at_the_start(client, tmp_path):
    (tmp_path / "file").touch()
    problem = bind(MODEL, *samples(N))
    with pytest.raises(ValueError, match=r"checkpoint='.*file': expected a folder .* the driver"):
        solver(client).solve(problem, checkpoint=tmp_path / "file")
    with pytest.raises(ValueError, match=r"cannot write into its folder"):
        solver(client).solve(problem, checkpoint=tmp_path / "missing" / "run")
    with pytest.raises(NotImplementedError, match="Forgetful cannot be saved"):
        solver(client, sampler=Forgetful()).solve(problem, checkpoint=tmp_path / "run")


def test_samplers_are_refreshed(client):
    run = solver(client, sampler=Gap(refresh_every=2))
    result = run.solve(bind(MODEL, *samples(N)), tol=0, max_epochs=4)
    assert result.n_oracle_calls == result.n_updates + 2 * N
    assert np.isfinite(result.history.gap[[2, 4]]).all()


@pytest.mark.parametrize("min_freq", [1, 3])
def test_files_and_bags_have_the_vocabulary_and_the_optimum_of_one_process(
    client, tmp_path, min_freq
):
    rows = write_shards(tmp_path, 50)
    (tmp_path / "shard-9.txt").touch()  # an empty one
    X, y = items_and_labels(rows)
    one = CRF(min_freq=min_freq, random_state=0).fit(X, y)
    bag = dask.bag.from_sequence(list(zip(X, y, strict=True)), npartitions=3)
    for corpus in (from_files(tmp_path / "shard-*.txt"), from_bag(bag)):
        crf = CRF(solver=solver(client), min_freq=min_freq).fit(corpus)
        assert crf.converged_
        assert crf.attributes_ == one.attributes_ == Vectorizer(min_freq).fit(X).attributes_
        assert crf.classes_ == one.classes_
        assert_allclose(crf.primal_objective_, one.primal_objective_, rtol=1e-3)
        assert crf.suspects_ is None
        assert crf.predict(X[:3]) == one.predict(X[:3])


class WithoutDask(pickle.Pickler):
    """Pickles all but the objects of Dask: clients, futures, actors."""

    def persistent_id(self, thing):
        return "dask" if type(thing).__module__.startswith("distributed.") else None


def test_the_driver_keeps_nothing_of_the_sequences_in_files(client, tmp_path):
    write_shards(tmp_path, 60, n_files=2)
    shards = {path: path.read_text() + "\n" for path in tmp_path.glob("shard-*.txt")}
    sizes = []
    for copies in (1, 20):
        for path, text in shards.items():
            path.write_text(text * copies)
        known = from_files(tmp_path / "shard-*.txt").learn(client)
        assert known.n_samples == 60 * copies
        model = ChainModel(len(known.encoder.classes_), len(known.vocabulary))
        result = solver(client, n_partitions=2).solve(known.bind(model), tol=0, max_epochs=1)
        kept = io.BytesIO()
        WithoutDask(kept).dump(result.state)
        sizes.append(kept.tell())
    assert sizes[0] > 4 * 8 * model.dim  # w, and two supports and sums at least
    assert abs(sizes[1] - sizes[0]) < 60  # for 1140 sequences more


def test_the_driver_lets_go_of_what_workers_have_got(client):
    run, sent = state(client), []

    def arguments(member):
        news = member.news(run.w, run.w != run.sent)
        sent.append(weakref.ref(news.values))
        return news, False

    gc.collect()
    gc.disable()  # or else messages that are left over may be collected by chance
    try:
        run.team.ask("losses", arguments)
        assert [reference() is None for reference in sent] == [True] * 3
    finally:
        gc.enable()


def test_files_in_the_format_of_crfsuite(client, tmp_path):
    (tmp_path / "a.txt").write_text("A\tx\tlength:2\nB\ty\n\n")
    (tmp_path / "b.txt").write_text("B\ty\tz\n")
    corpus = from_files([tmp_path / "a.txt", str(tmp_path / "b.txt")], templates=None)
    crf = CRF(solver=solver(client)).fit(corpus)
    assert crf.attributes_ == ["x", "length", "y", "z"]
    assert crf.classes_ == ["A", "B"]


def test_crf_by_name(client):
    X, y = items_and_labels(sentences(30))
    one = CRF(random_state=0).fit(X, y)
    crf = CRF(solver="dask", random_state=0, warm_start=True).fit(X, y, X[:5], y[:5])
    assert crf.converged_
    assert_allclose(crf.primal_objective_, one.primal_objective_, rtol=1e-3)
    assert [i for i, _ in crf.suspects_[:1]] == [i for i, _ in one.suspects_[:1]]
    assert crf.history_.dev_accuracy.size == crf.n_epochs_ + 1
    n_epochs = crf.n_epochs_
    assert crf.fit(X, y).n_epochs_ < n_epochs
    assert crf.set_params(solver="sdca").fit(X, y).converged_


def test_copies_take_the_current_client(client):
    X, y = items_and_labels(sentences(20))
    crf = clone(CRF(solver=solver(client))).fit(X, y)
    assert crf.converged_
    assert crf.solver.client is None
    assert pickle.loads(pickle.dumps(crf)).predict(X) == crf.predict(X)


def test_learner(client):
    X, Y = samples(N)
    learner = CRFLearner(MODEL, solver=solver(client)).fit(X, Y)
    one = CRFLearner(MODEL, random_state=0).fit(X, Y)
    assert_allclose(learner.w, one.w, atol=0.2)


def test_progress(client, capsys):
    solver(client).solve(bind(MODEL, *samples(N)), tol=1e-2, verbose=True)
    assert "epoch" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rounds": 0}, "rounds=0: expected an integer >= 1"),
        ({"n_partitions": 0}, "n_partitions=0: expected an integer >= 1"),
        ({"coupling": -1.0}, "coupling=-1.0: expected a number above 0"),
        ({"timeout": 0}, "timeout=0: expected a number above 0"),
        ({"epsilon": 2.0}, "epsilon=2.0: expected a number above 0 and at most 1"),
        ({"random_state": -1}, "random_state=-1: expected an integer >= 0"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        DaskSDCA(**options)


def test_options_of_the_steps(client):
    fixed = solver(client, epsilon=0.5, step_size=0.3).init(bind(MODEL, *samples(N)), 0.05)
    start = solver(client, epsilon=0.5).init(bind(MODEL, *samples(N)), 0.05)
    assert fixed.dual == start.dual != state(client).dual
    fixed.epoch()
    start.epoch()
    assert fixed.dual != start.dual


def test_bad_input(client, tmp_path):
    X, Y = samples(N)
    with pytest.raises(TypeError, match=r"expected sdcastruct\.distributed\.bind"):
        solver(client).solve(MODEL.bind(X, Y))
    with pytest.raises(ValueError, match="X has 40 samples but Y has 39"):
        bind(MODEL, X, Y[1:])
    with pytest.raises(ValueError, match=r"weights has shape \(3,\), expected \(40,\)"):
        bind(MODEL, X, Y).weighted(np.ones(3))
    Y[4] = Y[4] + 7
    with pytest.raises(ValueError, match=r"partition 1 \(samples 1, 4, ...\): Y\[1\]"):
        solver(client).solve(bind(MODEL, X, Y))
    with pytest.raises(ValueError, match="n_jobs=2: expected 1 for DaskSDCA"):
        solver(client).solve(bind(MODEL, *samples(N)), n_jobs=2)


def test_bad_corpora(client, tmp_path):
    with pytest.raises(ValueError, match="there is no such file"):
        from_files(str(tmp_path / "*.txt"))
    with pytest.raises(ValueError, match="expected at least one file"):
        from_files([])
    with pytest.raises(TypeError, match="templates=3: expected templates"):
        from_files("a.txt", templates=3)
    with pytest.raises(TypeError, match=r"bag=\[\]: expected a dask.bag.Bag"):
        from_bag([])
    pairs = dask.bag.from_sequence([([["a"]], ["A", "B"])])
    with pytest.raises(ValueError, match="is persisted"):
        from_bag(pairs.persist())
    with pytest.raises(ValueError, match="partition 0 of the bag has"):
        CRF(solver=solver(client)).fit(from_bag(pairs))
    (tmp_path / "empty.txt").touch()
    with pytest.raises(ValueError, match="the corpus has no sequences"):
        CRF(solver=solver(client)).fit(from_files(tmp_path / "empty.txt"))
    write_shards(tmp_path, 4, n_files=1)
    corpus = from_files(tmp_path / "shard-0.txt")
    with pytest.raises(ValueError, match="y is None: expected the labels of X"):
        CRF().fit(corpus)
    with pytest.raises(ValueError, match="class_weight='balanced': expected None with a corpus"):
        CRF(solver=solver(client), class_weight="balanced").fit(corpus)
    with pytest.raises(ValueError, match="weights of samples are given"):
        solver(client).solve(corpus.learn(client).bind(MODEL).weighted(np.ones(4)))


def test_without_dask_there_is_an_error_that_names_the_extra(tmp_path):
    script = """
import sys
sys.modules["dask"] = sys.modules["distributed"] = None
from sdcastruct import CRF
X, y = [[["a"]], [["b"]]], [["A"], ["B"]]
assert CRF().fit(X, y).converged_
try:
    CRF(solver="dask").fit(X, y)
except ImportError as error:
    assert "pip install 'sdcastruct[dask]'" in str(error), error
    print("clear")
"""
    process = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True
    )
    assert process.stdout == "clear\n", process.stderr


def test_a_cluster_is_started_where_there_is_none(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from sdcastruct import CRF\n"
        "if __name__ == '__main__':\n"
        "    X, y = [[['a']], [['b']]] * 3, [['A'], ['B']] * 3\n"
        "    print(CRF(solver='dask').fit(X, y).converged_)\n"
    )
    process = subprocess.run(
        [sys.executable, "-W", "error", script], capture_output=True, text=True, timeout=180
    )
    assert process.stdout == "True\n", process.stderr
    assert process.stderr == ""


def test_rows_of_files_are_read_as_one_process_reads_them(tmp_path):
    rows = write_shards(tmp_path, 9, n_files=2)
    files = from_files([tmp_path / "shard-0.txt", tmp_path / "shard-1.txt"]).sources
    read = [pair for file in files for pair in file.read()]
    X, y = items_and_labels(rows)
    assert read == list(zip(X, y, strict=True))
    with (tmp_path / "shard-0.txt").open() as file:
        assert len(list(read_columns(file))) == 5


def test_uniform_sampling(client):
    assert solver(client, sampler=Uniform()).solve(bind(MODEL, *samples(N)), tol=1e-3).converged
