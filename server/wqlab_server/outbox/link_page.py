"""Pages behind the links in personal mails. They need no script and no sign-in; programs get problem documents."""

from __future__ import annotations

from html import escape
from http import HTTPStatus

from fastapi import Request, Response
from fastapi.responses import HTMLResponse

from ..http import problems
from ..http.problems import ApiProblem

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
_HEADERS = {"Content-Security-Policy": _POLICY, "Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
"""The address of the page is a secret, so browsers must not send it to other pages."""
_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>{title} · wqlab</title>
<style>
  body {{ font: 1rem/1.5 system-ui, sans-serif; max-width: 40rem; margin: 3rem auto; padding: 0 1rem }}
  p {{ overflow-wrap: anywhere }}
  button {{ font: inherit; min-height: 2.75rem; padding: .4rem 1.2rem }}
</style>
<main>
<h1>{title}</h1>
<p>{text}</p>
{form}<p><a href="/account#mail">Account</a> · <a href="/">Start page</a></p>
</main>
</html>
"""
_FORM = '<form method="post"><button>{button}</button></form>\n'


def question(title: str, text: str, *, button: str) -> Response:
    """Return a page whose button sends a POST to its own address."""
    return _page(title, text, _FORM.format(button=escape(button)))


def done(text: str) -> Response:
    return _page("Done", text)


def failure(request: Request, problem: ApiProblem) -> Response:
    """Return a page if the request comes from a browser's address bar, link or form, else the problem document."""
    if "text/html" not in request.headers.get("accept", ""):
        return problems.response(problem)
    text = problem.detail[:1].upper() + problem.detail[1:] + ("" if problem.detail.endswith(".") else ".")
    return _page(HTTPStatus(problem.status).phrase, text, status=problem.status)


def _page(title: str, text: str, form: str = "", *, status: int = 200) -> Response:
    return HTMLResponse(_PAGE.format(title=escape(title), text=escape(text), form=form), status, _HEADERS)
