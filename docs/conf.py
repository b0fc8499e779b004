"""How Sphinx builds the documentation: ``make docs``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import specopt

HERE = Path(__file__).parent
sys.path.append(str(HERE))

project = "specopt"
author = copyright = "specopt developers"
version = release = specopt.__version__

extensions = ["myst_nb", "numpydoc", "sphinx.ext.autodoc", "declared", "mathml"]
exclude_patterns = ["recorded", "own-method/build", "**/.ipynb_checkpoints"]
default_role = "code"  # what docstrings quote

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "cache"  # what did not change is not executed again
nb_execution_cache_path = str(HERE.parent / "build" / "docs" / "cache")
nb_execution_timeout = 300
nb_execution_raise_on_error = True
if tags.has("quick"):  # noqa: F821 - of Sphinx
    nb_execution_excludepatterns = ["tutorials/*"]  # tests execute them
nb_merge_streams = True

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
numpydoc_show_class_members = False

html_math_renderer = "mathml"
html_theme = "furo"
html_static_path, html_css_files = ["static"], ["site.css"]
html_baseurl = os.environ.get("READTHEDOCS_CANONICAL_URL", "")  # the default version is the one to find
html_title = f"specopt {version}"
html_copy_source = html_show_sourcelink = False
