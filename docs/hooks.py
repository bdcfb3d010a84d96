"""Turn the formulas of a built page into MathML, which browsers draw without any script.

mkdocs calls it as a hook. Another generator does not have to know it: `python docs/hooks.py SITE` does the same with a finished site.
"""

import html
import re
import sys
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert

_FORMULA = re.compile(r'<(span|div) class="arithmatex">\s*\\([(\[])(.*?)\\[)\]]\s*</(?:span|div)>', re.DOTALL)


def on_post_page(output: str, **_: Any) -> str:
    """Called by mkdocs with each finished page."""
    return _FORMULA.sub(_mathml, output)


def _mathml(match: re.Match[str]) -> str:
    tag, opening, formula = match.groups()
    display = "block" if opening == "[" else "inline"
    return f'<{tag} class="formula">{convert(_known(html.unescape(formula)), display=display)}</{tag}>'


def _known(formula: str) -> str:
    """The formula in words that the converter knows."""
    formula = re.sub(r"(begin|end)\{aligned\}", r"\1{align*}", formula)
    return re.sub(r"\\[bB]igg?\\([lr])(ceil|floor)\b", lambda m: f"\\{'left' if m[1] == 'l' else 'right'}\\{m[1]}{m[2]}", formula)


def main(site: Path) -> None:
    """All pages of a finished site."""
    for page in site.rglob("*.html"):
        page.write_text(on_post_page(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
