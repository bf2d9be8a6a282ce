"""A verdict has the same sign in reports, on the web pages and in the glossary."""

import re
from pathlib import Path

from wqlab_comparison.words import SIGN
from wqlab_contracts.enums import Verdict

ROOT = Path(__file__).resolve().parent.parent


def test_every_verdict_except_no_evidence_has_a_unique_sign() -> None:
    assert set(SIGN) == set(Verdict)
    assert SIGN[Verdict.NO_EVIDENCE] == ""
    assert len(set(SIGN.values())) == len(Verdict)


def test_web_pages_use_the_same_signs() -> None:
    source = (ROOT / "web/src/lib/words.ts").read_text()
    written = re.findall(r'^  (\w+): \{\s*sign: "([^"]*)"', source, flags=re.MULTILINE)
    assert {name: sign.encode().decode("unicode_escape") for name, sign in written} == SIGN


def test_glossary_lists_the_same_signs() -> None:
    row = re.search(r"^\| verdict \| (.*) \|$", (ROOT / "docs/glossary.md").read_text(), flags=re.MULTILINE)
    assert row
    assert dict(re.findall(r"(\w+) \((\S)\)", row[1])) == {name: sign for name, sign in SIGN.items() if sign}
