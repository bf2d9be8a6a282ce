"""A Message-ID is found in whatever a person pastes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wqlab_contracts.message_ids import LENGTH_LIMIT, find_message_id, find_series
from wqlab_contracts.specs import Archive

ID = "20240130-wq-v2-1-abc@kernel.org"


@pytest.mark.parametrize(
    "pasted",
    [
        ID,
        f"<{ID}>",
        f"  <{ID}>\n",
        f"mid:{ID}",
        "mid:20240130-wq-v2-1-abc%40kernel.org",
        f"id:{ID}",
        f"Message-ID: <{ID}>",
        f"https://lore.kernel.org/r/{ID}",
        f"https://lore.kernel.org/all/{ID}/",
        f"https://lore.kernel.org/all/{ID}/T/#t",
        f"https://lore.kernel.org/lkml/{ID}/raw",
        f"https://lore.kernel.org/linux-fsdevel/{ID}/t.mbox.gz",
        "https://lore.kernel.org/all/20240130-wq-v2-1-abc%40kernel.org/",
        f"lore.kernel.org/all/{ID}/",
        f"http://lkml.kernel.org/r/{ID}",
        f"https://patch.msgid.link/{ID}",
        f"https://patchwork.kernel.org/project/linux-block/patch/{ID}/",
        f"http://127.0.0.1:8080/wq/{ID}/#r",
    ],
)
def test_message_id_is_found(pasted: str) -> None:
    assert find_message_id(pasted) == ID


def test_quoted_slash_belongs_to_the_id() -> None:
    assert find_message_id("https://lore.kernel.org/all/a%2Fb%3D1@mail.example/T/") == "a/b=1@mail.example"
    assert find_message_id("a/b=1@mail.example") == "a/b=1@mail.example"


def test_id_is_not_unquoted_twice() -> None:
    assert find_message_id("https://lore.kernel.org/all/a%2540b@c.example/") == "a%40b@c.example"
    assert find_message_id("a%2Fb@c.example") == "a%2Fb@c.example"


@pytest.mark.parametrize(
    "pasted",
    ["https://www.mail-archive.com/search?l=mid&q=a%40b", "https://marc.info/?i=a@b", "https://marc.info/?i=%3Ca@b%3E"],
)
def test_id_in_the_query_of_an_archive_is_found(pasted: str) -> None:
    assert find_message_id(pasted) == "a@b"


@pytest.mark.parametrize(
    "pasted",
    [
        "",
        "not an id",
        "https://lore.kernel.org/all/",
        "https://lore.kernel.org/all/?q=a@b",
        "https://lists.example.org/archives/list/devel@lists.example.org/message/ABCDEFGH/",
        "https://lists.example.org/hyperkitty/list/devel@lists.example.org/thread/ABCDEFGH/#XYZ",
        "https://lists.example.org/archives/list/devel@lists.example.org/",
        "https://www.mail-archive.com/linux-kernel@vger.kernel.org/msg12345.html",
        "mail-archive.com/dev@example.org/msg1.html",
        "two@ids@here",
        "a@b c@d",
        "\x1b[31m@host",
        "x" * LENGTH_LIMIT + "@host",
        "https://[broken/a@b",
        "/a@b",
    ],
)
def test_other_text_has_no_id(pasted: str) -> None:
    assert find_message_id(pasted) is None


_PARTS = st.text(st.characters(codec="ascii", categories=("L", "N", "P", "S"), exclude_characters="<>@"), min_size=1)


@given(_PARTS.filter(lambda part: not part.startswith("/") and ":" not in part), _PARTS)
def test_every_id_is_found_in_the_page_that_an_archive_gives_it(left: str, right: str) -> None:
    message_id = f"{left}@{right}"
    archive = Archive(name="lore", summary="", url="https://lore.kernel.org/all/{message_id}/")
    assert find_message_id(archive.page(message_id)) == message_id
    assert find_message_id(f"<{message_id}>") == message_id or "://" in message_id or "/" in left


PATCHWORK = "https://patchwork.example.org"


@pytest.mark.parametrize(
    ("pasted", "address"),
    [
        ("12345", "12345"),
        (" 12345\n", "12345"),
        (f"{PATCHWORK}/project/linux-wq/list/?series=12345", f"{PATCHWORK}/series/12345/"),
        (f"{PATCHWORK}/project/linux-wq/list/?state=*&series=12345&archive=both", f"{PATCHWORK}/series/12345/"),
        (f"{PATCHWORK}/api/1.3/series/12345/", f"{PATCHWORK}/series/12345/"),
        (f"{PATCHWORK}/api/series/12345", f"{PATCHWORK}/series/12345/"),
        (f"{PATCHWORK}/series/12345/mbox/", f"{PATCHWORK}/series/12345/"),
        ("patchwork.example.org/series/12345/", f"{PATCHWORK}/series/12345/"),
        ("http://127.0.0.1:8000/pw/series/7/", "http://127.0.0.1:8000/pw/series/7/"),
        ("0", None),
        ("012", None),
        ("1" * 10, None),
        (f"{PATCHWORK}/series/0/", None),
        (f"{PATCHWORK}/series/12345/patches/", None),
        (f"{PATCHWORK}/project/linux-wq/list/", None),
        (f"{PATCHWORK}/project/linux-wq/list/?series=*", None),
        ("ftp://patchwork.example.org/series/1/", None),
        ("https://me:secret@patchwork.example.org/series/1/", None),
        ("https:///series/1/", None),
        ("https://[broken/series/1/", None),
        (f"{PATCHWORK}/{'x' * LENGTH_LIMIT}/series/1/", None),
        ("a@b", None),
    ],
)
def test_address_of_a_series_is_found(pasted: str, address: str | None) -> None:
    assert find_series(pasted) == address


def test_series_of_a_patchwork_has_its_address() -> None:
    archive = Archive(name="pw", kind="patchwork", summary="", url=f"{PATCHWORK}/pw")
    for address, number in (
        ("7", 7),
        ("http://Patchwork.example.org/pw/series/7/", 7),
        (f"{PATCHWORK}/series/7/", None),
    ):
        assert archive.series_number(address) == number
