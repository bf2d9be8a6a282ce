"""Archives of the data folder: their order, and problems with their file."""

from pathlib import Path
from textwrap import dedent

import pytest
from data_folder import problems, write

from wqlab_contracts.loading import load_data

REPOSITORY = Path(__file__).parents[2]


ARCHIVES = """\
    archives:
      - name: lore
        summary: all lists
        url: https://lore.example.org/all/{message_id}/
        search: https://lore.example.org/all/?x=m&t=1&q={query}
      - name: ours
        summary: the lab's own list
        url: http://127.0.0.1:8080/wq/{message_id}/
        list: wq@lists.example.org
        private: true
    """


def test_archives_are_kept_in_their_order(folder: Path) -> None:
    assert load_data(folder).archives == ()
    write(folder, "intake/archives.yaml", dedent(ARCHIVES))
    lore, ours = load_data(folder).archives
    assert lore.thread("a/b@c") == "https://lore.example.org/all/a%2Fb@c/t.mbox.gz"
    assert lore.results('s:"x & y"') == "https://lore.example.org/all/?x=m&t=1&q=s%3A%22x%20%26%20y%22"
    assert (ours.name, ours.results("x"), ours.list) == ("ours", None, "wq@lists.example.org")


PATCHWORK = """\
    archives:
      - name: pw
        kind: patchwork
        summary: Patchwork of the list
        url: https://patchwork.example.org
        list: wq@lists.example.org
        checks: {project: wq, token_file: /etc/wqlab/pw.token, owners: [ci]}
    """


def test_workers_do_not_get_what_is_written_to_a_patchwork(folder: Path) -> None:
    write(folder, "intake/archives.yaml", dedent(PATCHWORK))
    (archive,) = load_data(folder).archives
    assert archive.checks is not None and archive.checks.project == "wq"
    assert "checks" not in archive.model_dump(mode="json")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("kind: patchwork", "kind: public_inbox", "checks are written to a Patchwork: add `kind: patchwork`"),
        ("https:", "http:", "url: http is allowed only with `private: true`"),
        ("example.org\n", "example.org/\n", "url must not end with a slash"),
        ("example.org\n", "example.org/?q=1\n", "url must be https://HOST, perhaps with a path"),
        ("list:", "epochs:", "a Patchwork has no search, epochs or dkim_checked"),
        ("owners: [ci]", "owners: []", "checks.owners"),
        ("project: wq", "project: a/b", "checks.project"),
    ],
)
def test_wrong_patchwork_is_reported(folder: Path, old: str, new: str, expected: str) -> None:
    write(folder, "intake/archives.yaml", dedent(PATCHWORK).replace(old, new, 1))
    assert expected in str(problems(folder))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("name: ours", "name: lore", "archives[1].name: lore is defined twice"),
        ("private: true", "private: false", "url: http is allowed only with `private: true`"),
        ("lore.example.org/all/{message_id}/", "lore.example.org/all/", "must contain {message_id} once"),
        ("all/{message_id}/", "all/{message_id}/raw", "url must end with {message_id}/"),
        ("https://lore.example.org/all/?", "https://elsewhere.example.org/all/?", "same scheme, host and port as url"),
        ("https://lore.example.org/all/{", "https://me:secret@lore.example.org/all/{", "url contains credentials"),
        ("https://lore.example.org/all/{", "https://{", "has no host"),
        ("search:", "serach:", "unknown field; did you mean search?"),
    ],
)
def test_wrong_archive_is_reported(folder: Path, old: str, new: str, expected: str) -> None:
    write(folder, "intake/archives.yaml", dedent(ARCHIVES).replace(old, new, 1))
    found = problems(folder)
    assert expected in str(found), found


def test_the_repository_lists_an_archive_with_search() -> None:
    archives = load_data(REPOSITORY).archives
    assert archives and all(archive.search and not archive.private for archive in archives)
