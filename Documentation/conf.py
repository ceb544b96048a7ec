# SPDX-License-Identifier: GPL-2.0
"""The settings of Sphinx for make htmldocs."""
project = "accmem"
root_doc = "index"
highlight_language = "none"  # of literal blocks; a code block names its own
html_theme = "alabaster"
html_theme_options = {
    "description": "Memory of accelerators, managed by a Linux kernel module",
    "fixed_sidebar": True,
    "show_powered_by": False,
    "page_width": "1200px",
    "sidebar_width": "240px",
    "body_max_width": "920px",
    "font_family": "sans-serif",
    "head_font_family": "sans-serif",
    "font_size": "16px",
    "code_font_size": "0.8em",
}
html_sidebars = {"**": ["about.html", "searchbox.html", "navigation.html"]}
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_static_path = ["static"]
html_css_files = ["accmem.css"]
