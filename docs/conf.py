"""How Sphinx builds the site: `make docs`. Nothing is fetched from a network, by the build or by the pages."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent)]
os.environ.setdefault("MPLBACKEND", "agg")

from ldsvm import __version__  # noqa: E402

project = "ldsvm"
author = "the ldsvm developers"
copyright = "2026, the ldsvm developers"
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "mathml",
    "generated",
]
if os.environ.get("LDSVM_DOCS") != "text":  # the tests build without the gallery's figures
    extensions.append("sphinx_gallery.gen_gallery")
exclude_patterns = [
    "_build",
    "_ext",
    "gallery/*",
    "measured/*",
    "**/GALLERY_HEADER.rst",
    "**/sg_execution_times.rst",
    "sg_execution_times.rst",
]

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
suppress_warnings = ["config.cache"]
if "sphinx_gallery.gen_gallery" not in extensions:
    exclude_patterns.append("auto_gallery")
    suppress_warnings += ["toc.excluded", "toc.not_readable"]
html_math_renderer = "mathml"

autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "pydata_sphinx_theme"
html_title = "ldsvm"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "navbar_align": "left",
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "filename_pattern": r"/plot_",
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 1e9,
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "notebook_images": False,
    "within_subsection_order": "FileNameSortKey",
    "reset_modules": (),
}
