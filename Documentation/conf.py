# SPDX-License-Identifier: GPL-2.0
"""The settings of Sphinx for make htmldocs."""
project = "accmem"
root_doc = "index"
html_theme = "alabaster"
