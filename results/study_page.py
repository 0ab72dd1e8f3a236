# SPDX-License-Identifier: BSD-3-Clause
"""Writes the report of a scaling study as one HTML file (study.py)."""

import base64
import html

from markdown_it import MarkdownIt

# The policy keeps the browser from fetching anything.
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
:root {{ --text: #1d2329; --page: #ffffff; --line: #d5dbe1; --shade: #f3f5f7; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --text: #d9dee4; --page: #16191d; --line: #3a424b; --shade: #20252b; }}
}}
body {{ max-width: 75rem; margin: 0 auto; padding: 1rem 1.5rem 3rem; color: var(--text); background: var(--page);
  font: 1rem/1.55 system-ui, sans-serif; }}
h1, h2, h3, h4 {{ line-height: 1.25; margin: 2rem 0 0.75rem; }}
h2 {{ padding-bottom: 0.25rem; border-bottom: 1px solid var(--line); }}
p, li {{ max-width: 50rem; }}
h1 + p {{ font-size: 1.15rem; }}
p:has(img) {{ max-width: none; }}
img {{ display: block; max-width: 100%; padding: 0.5rem; border-radius: 0.4rem; background: white; box-sizing: border-box; }}
code {{ font: 0.9em ui-monospace, monospace; background: var(--shade); padding: 0.1em 0.3em; border-radius: 0.2em; }}
table {{ display: block; overflow-x: auto; border-collapse: collapse; margin: 1rem 0; font-size: 0.875rem;
  font-variant-numeric: tabular-nums; }}
th, td {{ padding: 0.3rem 0.7rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }}
th {{ background: var(--shade); vertical-align: bottom; }}
tbody tr:hover {{ background: var(--shade); }}
@media print {{ table {{ display: table; }} img {{ break-inside: avoid; }} }}
</style>
</head>
<body>
{body}</body>
</html>
"""


def page(title, text, folder):
    """Returns Markdown as a page that contains its plots, which are in `folder`."""
    parse = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parse.parse(text)
    for token in tokens:
        for child in token.children or ():
            if child.type == "image":
                plot = (folder / child.attrs["src"]).read_bytes()
                child.attrs["src"] = "data:image/svg+xml;base64," + base64.b64encode(plot).decode()
    return PAGE.format(title=html.escape(title), body=parse.renderer.render(tokens, parse.options, {}))
