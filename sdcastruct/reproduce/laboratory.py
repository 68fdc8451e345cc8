"""Plan runs, do those that are missing, and collect what an experiment looks at."""

from importlib.util import find_spec

from threadpoolctl import threadpool_limits
from tqdm import tqdm

from sdcastruct.reproduce import runs, tasks
from sdcastruct.reproduce.solvers import REFERENCES
from sdcastruct.reproduce.verdicts import TaskRuns

BAR = "{percentage:3.0f}%|{bar}| {desc} [{elapsed}, about {remaining} left]"


class Laboratory:
    """Does runs and keeps them.

    Parameters
    ----------
    store : Store
    settings : Settings
    wsj : str or Path, optional
        Folder of the Wall Street Journal, for POS.

    Attributes
    ----------
    unavailable : dict
        Why a task cannot be run, by its name.
    """

    def __init__(self, store, settings, wsj=None):
        self.store, self.settings, self.wsj = store, settings, wsj
        self.unavailable = {}

    def plan(self, experiments, chosen):
        """Return the runs that experiments need on the chosen tasks and that are not there yet."""
        plan = []
        for task in chosen:
            here = [experiment for experiment in experiments if task in experiment.tasks]
            names = [name for experiment in here for name in experiment.runs]
            if find_spec("pycrfsuite"):
                names += [name for experiment in here for name in experiment.optional.values()]
            plan += [(task, name) for name in dict.fromkeys(names) if not self._done(task, name)]
        return plan

    def _done(self, task, name):
        """Return whether a run is there; a file that is damaged or of another run is an error."""
        if not self.store.has(task, name):
            return False
        self._read(task, name)
        return True

    def _read(self, task, name):
        wsj = self.wsj if task == "POS" else None
        return self.store.read(task, name, runs.identity(name, self.settings, wsj))

    def do(self, plan):
        """Do all runs of a plan, each stored as soon as it is done."""
        loaded = self._load(dict.fromkeys(task for task, _ in plan))
        plan = [(task, name) for task, name in plan if task in loaded]
        costs = {name: task.problem.n_marginals for name, task in loaded.items()}
        total = sum(costs[task] for task, _ in plan)
        # One thread for all, so that their seconds can be compared.
        with threadpool_limits(1), tqdm(total=total, bar_format=BAR, disable=not plan) as bar:
            for k, (task, name) in enumerate(plan, 1):
                bar.set_description_str(f"{k}/{len(plan)} {task} {name}")
                record = runs.execute(loaded[task], name, self.settings, self._optimum(task, name))
                wsj = self.wsj if task == "POS" else None
                self.store.write(task, name, runs.identity(name, self.settings, wsj), record)
                bar.update(costs[task])

    def _load(self, names):
        loaded = {}
        for name in names:
            try:
                loaded[name] = tasks.load(name, self.settings.size, self.wsj)
            except (FileNotFoundError, ImportError) as error:
                self.unavailable[name] = str(error)
        return loaded

    def _optimum(self, task, name):
        if name in (runs.TABLE, runs.LINE_SEARCH_SECONDS, *REFERENCES):
            return None
        return min(self._read(task, reference).results["primal"] for reference in REFERENCES)

    def collect(self, experiment):
        """Return {task: TaskRuns} of the tasks on which all runs of an experiment are there."""
        found = {}
        for task in experiment.tasks:
            if all(self.store.has(task, name) for name in experiment.runs):
                extra = [n for n in experiment.optional.values() if self.store.has(task, n)]
                records = {name: self._read(task, name) for name in (*experiment.runs, *extra)}
                found[task] = TaskRuns(records, self.settings.precision)
        return found
