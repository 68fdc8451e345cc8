"""The code in README.md and docs/ is code that runs, and their links lead somewhere.

The blocks of a page run one after the other in a folder of their own, as a reader would try them:

- Python as it stands, or as a doctest if it has prompts, where ``...`` stands for anything;
- ``console`` sessions: each command after ``$``, and what it prints, in the same way;
- a block with a comment such as ``<!-- examples/grid.py -->`` before it is a verbatim part of that
  file but for its indentation, and other tests run the file;
- a ``text`` block with such a comment is a file that the reader is asked to write.

What a page calls ``result`` or ``crf`` has converged.
"""

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import indent

import pytest

from sdcastruct import testing

ROOT = Path(__file__).parent.parent
WRITTEN = [page for page in sorted((ROOT / "docs").rglob("*.md")) if "_build" not in page.parts]
PAGES = [ROOT / "README.md", *WRITTEN]
OPTIONAL = ("eli5", "pystruct", "sklearn_crfsuite")  # a page that imports one needs it
GUIDE = ROOT / "docs" / "add_a_graph_structure.md"
BLOCK = re.compile(
    r"(?:^<!-- (\S+) -->\n)?^```(python|cython|console|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE
)


def name(page):
    return str(page.relative_to(ROOT).with_suffix(""))


def blocks(page):
    """Return (file or "", language, code, line) of every block of code of a page."""
    text = page.read_text(encoding="utf-8")
    return [
        (*found.groups(""), text.count("\n", 0, found.start(3))) for found in BLOCK.finditer(text)
    ]


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=name)
def test_code(page, tmp_path, monkeypatch):
    for module in OPTIONAL:
        if re.search(rf"^(?:import|from) {module}\b", page.read_text("utf-8"), re.MULTILINE):
            pytest.importorskip(module)
    monkeypatch.chdir(tmp_path)
    names = {}
    for file, language, code, line in blocks(page):
        if language == "console":
            run_session(code)
        elif file and language == "text":
            Path(file).write_text(code, encoding="utf-8")
        elif file:
            source = (ROOT / file).read_text(encoding="utf-8")
            assert any(indent(code, " " * depth) in source for depth in (0, 4, 8)), code
        elif code.startswith(">>> "):
            run_doctest(code, names, page, line)
        elif language != "text":
            assert language == "python", "a block of Cython needs the name of its file"
            exec(compile("\n" * line + code, page.name, "exec"), names)
        assert "result" not in names or names["result"].converged
        assert "crf" not in names or names["crf"].converged_


def run_doctest(code, names, page, line):
    """Run a block with prompts; the names that it binds stay."""
    session = doctest.DocTestParser().get_doctest(code, names, page.name, str(page), line)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    assert runner.run(session, clear_globs=False).failed == 0
    names.update(session.globs)


def run_session(code):
    """Run the commands of a block in a shell and compare what they print."""
    scripts = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}
    for part in re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        process = subprocess.run(
            command, shell=True, env=environment, capture_output=True, text=True
        )
        printed = process.stdout + process.stderr
        same = doctest.OutputChecker().check_output(expected, printed, doctest.ELLIPSIS)
        assert same, f"$ {command}\n{printed}"


def test_the_guide_quotes_all_three_ways():
    files = {file for file, *_ in blocks(GUIDE)}
    assert files >= {
        "examples/higher_order_chain.py",
        "examples/semi_markov.py",
        "examples/choice/choice.pyx",
    }


def test_the_guide_shows_the_report_of_check_model():
    table = GUIDE.read_text(encoding="utf-8").split("```text\nidentity")[1].split("```")[0]
    shown = [line.split("  ")[0] for line in table.splitlines()[1:]]
    assert shown == list(testing.HINTS)


def test_the_reference_has_all_modules_with_public_names():
    sources = (ROOT / "sdcastruct").rglob("*.py")
    public = [path for path in sources if "\n__all__ = " in path.read_text(encoding="utf-8")]
    listed = (ROOT / "docs" / "api.md").read_text(encoding="utf-8").split()
    for path in public:
        assert ".".join(path.relative_to(ROOT).parts[:-1]) in listed, path


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page):
    text = re.sub(
        r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if link.startswith(("http:", "https:")):
            continue
        file, _, section = link.partition("#")
        target = page.parent / file if file else page
        assert target.exists(), link
        assert not section or section in sections(target), link


def sections(page):
    """Return the anchors of the headings of a page, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
