"""Turn the formulas of a built page into MathML, which browsers draw without any script."""

import html
import re
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
