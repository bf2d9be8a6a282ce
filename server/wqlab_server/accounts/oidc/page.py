"""Page for a person whose sign-in with the provider has failed. Programs get the same as a problem document."""

from __future__ import annotations

from html import escape
from http import HTTPStatus

from fastapi import Request, Response
from fastapi.responses import HTMLResponse

from ...http import problems
from ...http.problems import ApiProblem

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>Sign-in failed · wqlab</title>
<style>
  body {{ font: 1rem/1.5 system-ui, sans-serif; max-width: 40rem; margin: 3rem auto; padding: 0 1rem }}
</style>
<main>
<h1>Sign-in failed</h1>
<p>{detail}</p>
<p><a href="/sign-in">Sign in again</a> · <a href="/">Start page</a></p>
<p><small>{status} {phrase}</small></p>
</main>
</html>
"""


def failure(request: Request, problem: ApiProblem) -> Response:
    """Return a page if the request comes from a browser's address bar or link, else the problem document."""
    if "text/html" not in request.headers.get("accept", ""):
        return problems.response(problem)
    detail = problem.detail[:1].upper() + problem.detail[1:] + ("" if problem.detail.endswith(".") else ".")
    text = _PAGE.format(detail=escape(detail), status=problem.status, phrase=escape(HTTPStatus(problem.status).phrase))
    headers = {"Content-Security-Policy": _POLICY, "Cache-Control": "no-store", **problem.headers}
    return HTMLResponse(text, problem.status, headers)
