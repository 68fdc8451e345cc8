"""The code in README.md and docs/ is code that runs, and their links lead somewhere.

A block with a comment such as ``<!-- examples/grid.py -->`` before it is a verbatim part of that
file but for its indentation, and other tests run the file. Any other block runs as it stands, as a
doctest if it has prompts.
"""

import doctest
import re
from pathlib import Path
from textwrap import indent

import pytest

from sdcastruct import testing

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
GUIDE = ROOT / "docs" / "add_a_graph_structure.md"


def blocks(page):
    """Return (file or "", language, code) of every Python or Cython block of a page."""
    fence = r"(?:^<!-- (\S+) -->\n)?^```(python|cython)\n(.*?)^```$"
    return re.findall(fence, page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


BLOCKS = [
    pytest.param(page, *block, id=f"{page.stem}-{k}")
    for page in PAGES
    for k, block in enumerate(blocks(page), 1)
]


@pytest.mark.parametrize(("page", "file", "language", "code"), BLOCKS)
def test_code(page, file, language, code):
    names = {}
    if file:
        source = (ROOT / file).read_text(encoding="utf-8")
        assert any(indent(code, " " * depth) in source for depth in (0, 4, 8))
    elif code.startswith(">>> "):
        session = doctest.DocTestParser().get_doctest(code, names, page.name, str(page), 0)
        assert doctest.DocTestRunner().run(session).failed == 0
    else:
        assert language == "python", "a block of Cython needs the name of its file"
        exec(compile(code, page.name, "exec"), names)
        assert names["result"].converged if "result" in names else names["crf"].converged_


def test_the_guide_quotes_all_three_ways():
    files = {file for file, _, _ in blocks(GUIDE)}
    assert files >= {
        "examples/higher_order_chain.py",
        "examples/semi_markov.py",
        "examples/choice/choice.pyx",
    }


def test_the_guide_shows_the_report_of_check_model():
    table = GUIDE.read_text(encoding="utf-8").split("```text\nidentity")[1].split("```")[0]
    shown = [line.split("  ")[0] for line in table.splitlines()[1:]]
    assert shown == list(testing.HINTS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
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
