"""Render a page with one message and one link, which is shown instead of a report."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Template


def render_notice(title: str, text: str, href: str, label: str) -> str:
    return _template().render(title=title, text=text, href=href, label=label)


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("wqlab_server.reports"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template("notice.html.j2")
