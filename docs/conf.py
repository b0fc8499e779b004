"""How Sphinx builds the documentation: ``make docs``."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import specopt

HERE = Path(__file__).parent
sys.path.append(str(HERE))

from pages import with_methods  # noqa: E402 - the folder is no package

project = "specopt"
author = copyright = "specopt developers"
version = release = specopt.__version__

extensions = ["myst_nb", "mathml"]
exclude_patterns = ["recorded", "own-method/build", "**/.ipynb_checkpoints"]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # notebooks have their outputs: `make notebooks`
nb_merge_streams = True

html_math_renderer = "mathml"
html_theme = "furo"
html_static_path, html_css_files = ["static"], ["site.css"]
html_baseurl = os.environ.get(
    "READTHEDOCS_CANONICAL_URL", ""
)  # the default version is the one to find
html_title = f"specopt {version}"
html_copy_source = html_show_sourcelink = False

# Pages read without this build (`pages.py` writes what is generated). The site alone has a tree of
# contents from their lists, the text of files outside this folder in the place of links to them,
# the notebooks inside it, and the records of benchmarks to download.
CONTENTS = re.compile(r"<!-- generated: contents ?([^\n]*)\n(.*?)-->", re.DOTALL)
NOTEBOOK = re.compile(r"\[([^\]]*)\]\((?:\.\./)+notebooks/(\w+)\.ipynb\)")
RECORD = re.compile(r"\[([^\]]*)\]\((\.\./benchmarks/results/[^)]*)\)")
THIS_FILE = re.compile(r"<!-- site: this file -->\n\[.*?\]\((.*?)\)")


def tree(found: re.Match[str]) -> str:
    """Return the hidden tree of contents of a list of pages."""
    names = found[2].replace("../notebooks/", "tutorials/")
    return f"```{{toctree}}\n:hidden:\n:caption: {found[1] or 'Contents'}\n\n{names}```\n"


def this_file(found: re.Match[str]) -> str:
    """Return the directive that shows a file."""
    if found[1].endswith(".py"):
        return f"```{{literalinclude}} {found[1]}\n:language: python\n```"
    return f"```{{include}} {found[1]}\n:heading-offset: 1\n```"


def for_the_site(_app: Any, _name: str, source: list[str]) -> None:
    """Give Sphinx a page with what only the site has."""
    text = NOTEBOOK.sub(r"{doc}`\1 </tutorials/\2>`", CONTENTS.sub(tree, with_methods(source[0])))
    text = RECORD.sub(r"{download}`\1 <\2>`", text)
    source[0] = THIS_FILE.sub(this_file, text)


def setup(app: Any) -> None:
    """Register what is done before a page is read."""
    app.connect("source-read", for_the_site)
