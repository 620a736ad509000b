"""Groups of samples: by their ids, a regular expression, or a table; what says nothing or two things is refused."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest
from clips import called, refused
from hypothesis import given
from hypothesis import strategies as st
from twins.draw import FEW

from karat import evaluate
from karat.errors import InputError, KaratError, UsageError
from karat.groups import groups_of
from karat.run import Run

IDS = ["b1_00", "b1_01", "b2_00", "b2/x_01"]


def table(folder, text, encoding="utf-8"):
    (folder / "groups.csv").write_bytes(text.encode(encoding))
    return folder / "groups.csv"


def test_usual_ids():
    """building_transmitter, or building/transmitter."""
    assert groups_of(IDS, "building") == dict(zip(IDS, ["b1", "b1", "b2", "b2"], strict=True))
    assert groups_of(IDS, "transmitter") == dict(zip(IDS, ["00", "01", "00", "x_01"], strict=True))
    assert groups_of(["17/0003"], "building") == {"17/0003": "17"}
    assert groups_of([], "building") == {}


@FEW
@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 79)), unique=True))
def test_regular_expressions(numbers):
    """A named group, wherever it is found."""
    ids = [f"run7/city-{building}-tx{sender}.v2" for building, sender in numbers]
    pattern = r"city-(?P<building>\d+)-tx(?P<sender>\d+)"
    assert list(groups_of(ids, "building", pattern).values()) == [str(building) for building, _ in numbers]
    assert list(groups_of(ids, "sender", pattern).values()) == [str(sender) for _, sender in numbers]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_tables(tmp_path, end, encoding):
    """Ids first; quotes, commas, line breaks and letters of any kind; rows of other samples, and empty ones."""
    lines = [
        "id,floor,building",
        'b1_00,1,"Ost, Süd"',
        '"b1_01",2,"two',
        'lines"',
        "",
        "b2_00,1,B",
        "b2/x_01,1,B",
        "z,1,Z",
    ]
    found = groups_of(IDS, "building", table(tmp_path, end.join(lines) + end, encoding))
    assert list(found.values()) == ["Ost, Süd", f"two{end}lines", "B", "B"]
    assert list(groups_of(IDS, "floor", str(tmp_path / "groups.csv")).values()) == ["1", "2", "1", "1"]


def test_a_column_named_like_the_ids(tmp_path):
    """It is the one behind them."""
    assert groups_of(["a"], "building", table(tmp_path, "building,building\na,b\n")) == {"a": "b"}


@pytest.mark.parametrize(
    "by, given, said",
    [
        ("floor", None, "no group 'floor'; there is building, transmitter: name one in --groups '(?P<floor>...)'"),
        ("building", r"(\d+)", "There is no group 'building'; there is none"),
        ("building", r"(?P<building>b", "does not compile"),
        ("building", r"(?P<building>c\d)", "Sample b1_00 has no building: name the groups with --groups"),
        ("building", r"(?P<building>b1)?", "Sample b2_00 has no building"),
        ("building", "\x1b[31m(", r"\x1b[31m( does not compile"),
    ],
)  # fmt: skip
def test_expressions_that_are_refused(by, given, said):
    with pytest.raises(KaratError) as caught:
        groups_of(IDS, by, given)
    assert said in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "text, said",
    [
        ("", "is empty (0 bytes)"),
        ("\n\n", "has no column 'building' behind the ids, but nothing"),
        ("id,floor\nb1_00,1\n", "has no column 'building' behind the ids, but floor"),
        ("building,floor\nb1,1\n", "has no column 'building' behind the ids, but floor"),
        ("id;building\nb1_00;b1\n", "has no column 'building' behind the ids, but nothing"),
        ("id,building\nb1_00,b1\n", "Sample b1_01 has no building"),
        ("id,building\nb1_00,b1\nb1_01\n", "Sample b1_01 has no building"),
        ("id,building\nb1_00,b1\nb1_01,\n", "Sample b1_01 has no building"),
        ("id,building\nb1_00,b1\nb1_00,b2\n", "has two rows of b1_00, in different groups"),
        ('id,building\nb1_00,"b1\n', "cannot be read (Error)"),
        ("id,building\n" + "b" * 200_000 + ",b1\n", "cannot be read (Error)"),
    ],
)
def test_tables_that_are_refused(tmp_path, text, said):
    with pytest.raises(InputError) as caught:
        groups_of(IDS, "building", table(tmp_path, text))
    assert said in str(caught.value)
    assert str(caught.value).isprintable()


def test_a_row_may_come_twice(tmp_path):
    assert groups_of(["a"], "building", table(tmp_path, "id,building\na,b\na,b\n")) == {"a": "b"}


def test_files_that_are_no_table(tmp_path):
    for path, content in (("none.csv", None), ("bytes.csv", b"\xff\xfe\x00"), ("empty.csv", b"")):
        if content is not None:
            (tmp_path / path).write_bytes(content)
        with pytest.raises(InputError, match=path):
            groups_of(IDS, "building", tmp_path / path)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match=r"folder\.csv cannot be read"):
        groups_of(IDS, "building", tmp_path / "folder.csv")


MAPS = np.random.default_rng(0).uniform(-150, -50, (4, 8, 9))


def run(**more):
    truth = dict(zip(IDS, MAPS, strict=True))
    noise = np.random.default_rng(1).normal(0, 3, MAPS.shape)
    return evaluate("radiomap", pred=dict(zip(IDS, MAPS + noise, strict=True)), truth=truth, cache=False, **more)


def test_groups_are_signed(tmp_path):
    """By what, and which sample is in which; no score but the intervals changes."""
    plain, usual = run(), run(group_by="building")
    same = run(group_by="building", groups=table(tmp_path, "id,building\n" + "".join(f"{i},{i[:2]}\n" for i in IDS)))
    other = run(group_by="building", groups=r"_(?P<building>\d+)$")
    assert usual.groups == same.groups != other.groups
    assert usual.signature == same.signature
    assert len({plain.signature, usual.signature, other.signature}) == 3
    assert {name: value.value for name, value in plain.scores.items()} == pytest.approx(
        {name: value.value for name, value in other.scores.items()}, nan_ok=True
    )
    assert plain.scores["rmse"].interval is None
    assert usual.scores["rmse"].interval == same.scores["rmse"].interval != other.scores["rmse"].interval


def test_groups_that_are_not_asked_for_are_refused(tmp_path):
    """The table of groups alone says nothing."""
    with pytest.raises(UsageError, match="Which of the --groups counts is not said: pass --group-by"):
        run(groups=r"(?P<building>.)")
    for name, array in zip(IDS[:2], MAPS, strict=False):
        np.save(tmp_path / f"{name}.npy", array)
    given = ("run", "radiomap", "--pred", tmp_path, "--truth", tmp_path)
    refused(called(*given, "--groups", "x.csv"), "--group-by")
    refused(called(*given, "--group-by", "floor"), "no group 'floor'", "building, transmitter")
    refused(called(*given, "--group-by", "building", "--groups", tmp_path / "x.csv"), "x.csv cannot be read")


def test_rows_carry_their_group(tmp_path):
    """The tables of a run say of every row which group it is of, and the run reads them back."""
    maps = {name: np.full((8, 9), float(i)) for i, name in enumerate(IDS)}
    run = evaluate("radiomap", pred=maps, truth=maps, group_by="building", out=tmp_path / "run")
    tables = [pq.read_table(file).to_pydict() for file in sorted((tmp_path / "run" / "rows").rglob("*.parquet"))]
    found = {pair for table in tables for pair in zip(table["sample"], table["group"], strict=True)}
    assert found == set(run.groups.items())
    assert Run.load(tmp_path / "run").plain() == run.plain()
    evaluate("radiomap", pred=maps, truth=maps, out=tmp_path / "plain")
    files = (tmp_path / "plain" / "rows").rglob("*.parquet")
    assert all("group" not in pq.read_table(file).column_names for file in files)
