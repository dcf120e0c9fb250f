from __future__ import annotations

import pytest

from lading.shrink import Shrunk, Target
from lading.shrink.listings import FOLDED, GROUPED, SHRINKER
from lading.tokens.estimate import ESTIMATE

TREE = """.
├── cart
│   ├── a.py
│   ├── deep
│   │   └── b.py
│   └── c.py
└── tea
    ├── d.md
    └── e.md

3 directories, 5 files
"""


def reshaped(text: str, form: str) -> Shrunk:
    (found,) = [found for found in SHRINKER.reshape(text) if found.form == form]
    assert SHRINKER.decode(found.text, form) == text
    return found


def reduced(text: str, most_tokens: int, *terms: str) -> list[str]:
    shrunk = SHRINKER.reduce(text, Target(most_tokens, terms, "artifact://t/s/log/7"), ESTIMATE.count)
    assert shrunk is not None
    assert shrunk.form == "listing.folders"
    return shrunk.text.split("\n")


def test_each_folder_stands_once_above_its_names_without_loss() -> None:
    text = "src/cart/a.py\nsrc/cart/b.py\nsrc/cart/deep/\nREADME.md\nsrc/tea/c.py\n"
    assert reshaped(text, GROUPED).text == "src/cart/:\na.py\nb.py\ndeep/\n:\nREADME.md\nsrc/tea/c.py\n"


def test_a_root_that_all_share_is_said_once() -> None:
    folders = ("cart", "tea", "pot")
    text = "\n".join(f"/home/ann/projects/shop/{folder}/part_{name}.py" for folder in folders for name in "abc")
    assert reshaped(text, GROUPED).text.split("\n")[:5] == [
        "~/ is /home/ann/projects/shop/",
        "~/cart/:",
        "part_a.py",
        "part_b.py",
        "part_c.py",
    ]


def test_columns_that_all_lines_start_with_are_said_once() -> None:
    text = "total 8\n" + "".join(
        f"-rw-r--r-- 1 ann ann {number * 37} Mar  4 10:00 a{number}.py\n" for number in range(9)
    )
    assert reshaped(text, FOLDED).text.startswith(
        "total 8\n[9 lines below start with] -rw-r--r-- 1 ann ann \n0 Mar"
    )


@pytest.mark.parametrize("form", ["listing.tree", "listing.tree-wide", "listing.tree-ascii"])
def test_drawn_trees_are_indented_without_loss(form: str) -> None:
    text = TREE
    if form.endswith("wide"):
        text = text.replace("│   ", "│\xa0\xa0 ")
    if form.endswith("ascii"):
        text = text.replace("│", "|").replace("├──", "|--").replace("└──", "`--")
    assert reshaped(text, form).text == (
        ".\n  cart\n    a.py\n    deep\n      b.py\n    c.py\n  tea\n    d.md\n    e.md\n\n3 directories, 5 files\n"
    )


def test_folders_say_how_many_names_of_which_suffixes_they_hold() -> None:
    text = "\n".join(
        f"src/{part}/file_{n}.{'md' if n % 4 else 'py'}" for part in ("cart", "tea") for n in range(80)
    )
    shown = reduced(text, 110, "file_41")
    assert shown[0].startswith("[160 names in 2 folders; ")
    assert shown[0].endswith(" of 160 lines left out. Original: artifact://t/s/log/7]")
    for part in ("cart", "tea"):
        place = shown.index(f"src/{part}/: 80 names, .md 60, .py 20")
        assert shown[place + 1] == "file_0.py"
        assert "file_41.md" in shown[place:]


def test_names_below_the_line_of_their_folder_and_long_lines_belong_to_it() -> None:
    parts = [
        f"./{part}:\ntotal 4\n"
        + "".join(f"-rw-r--r-- 1 ann ann 5 Mar  4 10:00 {part}_{n}.py\n" for n in range(50))
        + "\n"
        for part in ("cart", "tea")
    ]
    shown = reduced("".join(parts) + "LICENSE", 150, "tea_7.py")
    place = shown.index("./tea/: 51 names, .py 50")
    assert "-rw-r--r-- 1 ann ann 5 Mar  4 10:00 tea_7.py" in shown[place:]
    assert "./cart/: 50 names, .py 50" in shown[:place]


def test_a_line_above_whole_paths_is_no_folder() -> None:
    shown = reduced("Found these:\n" + "".join(f"/srv/shop/part_{number}.py\n" for number in range(200)), 80)
    assert shown[1:4] == ["./: 1 name", "Found these:", "/srv/shop/: 200 names, .py 200"]


def test_a_long_list_of_one_folder_keeps_its_ends() -> None:
    shown = reduced("\n".join(f"part_{number:03}" for number in range(400)), 60)
    assert shown[1:3] == ["./: 400 names", "part_000"]
    assert shown[-1] == "part_399"


def test_what_is_asked_for_in_a_tree_stays_below_its_folders() -> None:
    many = "".join(f"│   ├── part_{number}.py\n" for number in range(200))
    shown = reduced(f".\n├── cart\n{many}│   └── deep\n│       └── zebra.md\n└── tea\n", 90, "zebra")
    assert shown[0].startswith("[Tree, indented; ")
    assert [line for line in shown[1:] if "part" not in line][:4] == [
        ". (2 names)",
        "  cart (201 names, .py 200)",
        "    deep (1 name, .md 1)",
        "      zebra.md",
    ]


def test_blank_lines_are_no_listing_to_reduce() -> None:
    assert SHRINKER.reduce("\n" * 300, Target(5), ESTIMATE.count) is None
