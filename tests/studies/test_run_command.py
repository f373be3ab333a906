"""``lexical-sae run``: the list, the plan, the quick form, and what is wrong with a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from lexical_sae.studies.fallback import check_fallback
from lexical_sae.studies.files import default_folder, load_study, study_files
from lexical_sae.studies.registry import STUDIES
from lexical_sae.studies.study_record import check_folder, kind_kept
from tests.command_line import run
from tests.studies.conftest import StudyFiles

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


def test_the_list_names_every_kind_and_file() -> None:
    shown, _ = run("run", "--list")
    lines = shown.splitlines()
    assert [line.split()[0] for line in lines[: len(STUDIES)]] == list(STUDIES)
    assert any(line.split() == ["experiments/ablation.yaml", "ablation"] for line in lines)


@pytest.mark.parametrize("file", study_files(EXPERIMENTS), ids=lambda f: f.stem)
def test_every_file_is_whole_and_its_runs_can_be_counted(file: Path) -> None:
    config = load_study(file)
    study = STUDIES[config.study]  # type: ignore[attr-defined]
    assert len(study.cells(config)) >= 1
    paths = [cell.path for cell in study.cells(config)]
    assert len(set(paths)) == len(paths)


def test_every_kind_has_a_file_with_a_quick_form() -> None:
    kinds = {
        kind for file, kind in study_files(EXPERIMENTS).items() if "quick:" in file.read_text()
    }
    assert kinds == set(STUDIES)


def test_make_runs_the_quick_form_of_every_kind() -> None:
    text = (EXPERIMENTS.parent / "Makefile").read_text()
    names = text.split("STUDIES := ")[1].split("\n\n")[0].replace("\\", " ").split()
    kinds = [load_study(EXPERIMENTS / f"{name}.yaml", quick=True).study for name in names]  # type: ignore[attr-defined]
    assert kinds == list(STUDIES)


def test_the_quick_part_is_laid_over_the_rest(files: StudyFiles) -> None:
    file = files.write("ablation", seeds=3, quick={"seeds": 1, "train": {"epochs": 0.5}})
    full, quick = load_study(file), load_study(file, quick=True)
    assert (full.seeds, quick.seeds) == (3, 1)  # type: ignore[attr-defined]
    assert quick.train == {**full.train, "epochs": 0.5}  # type: ignore[attr-defined]
    assert load_study(file, ["seeds=2"], quick=True).seeds == 2  # type: ignore[attr-defined]
    assert load_study(file, quick=True, seeds=4).seeds == 4  # type: ignore[attr-defined]


def test_datasets_can_be_chosen_and_keep_their_settings() -> None:
    file = EXPERIMENTS / "cpu" / "ablation.yaml"
    own = load_study(file).datasets["sst2"]  # type: ignore[attr-defined]
    assert own
    for given in ("datasets=[sst2]", "datasets=sst2"):
        assert load_study(file, [given]).datasets == {"sst2": own}  # type: ignore[attr-defined]
    other = load_study(file, ["datasets=[sst2, imdb]"])
    assert other.datasets == {"sst2": own, "imdb": {}}  # type: ignore[attr-defined]
    added = load_study(file, ["datasets.sst2.epochs=3"])  # a mapping changes what it names
    assert list(added.datasets) == ["movie_snippets", "sst2"]  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="names a dataset twice"):
        load_study(file, ["datasets=[sst2, sst2]"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seds": 3}, "unknown key 'seds'; did you mean 'seeds'?"),
        ({"quick": {"seds": 3}}, "unknown key 'seds'; did you mean 'seeds'?"),
        ({"quick": 3}, "quick is 3; expected settings that differ"),
        ({"study": "ablatoin"}, "study is 'ablatoin'; did you mean 'ablation'?"),
        ({"train": {"epoch": 3}}, "'epoch' in train is no setting; did you mean 'epochs'?"),
        ({"train": {"seed": 3}}, "expected seeds, the number of runs per arm"),
        ({"train": {"train_rows": 3}}, "expected train_rows: beside train"),
        ({"train": {"dataset": "sst2"}}, "train.dataset and datasets are both given"),
        ({"train": {"dense_twin": True}}, "train.dense_twin is given; a study's arms say"),
        ({"datasets": {"sst2": {"seed": 7}}}, "datasets.sst2.seed is given; expected seeds"),
        ({"datasets": {"sst2": {"train_rows": 9}}}, "datasets.sst2.train_rows is given; it takes"),
        ({"datasets": {"sst2": {"dense_twin": True}}}, "datasets.sst2.dense_twin is given"),
        (
            {"datasets": {"sst2": {"dataset": "imdb"}}},
            "datasets.sst2.dataset is given; it is named",
        ),
        ({"datasets": {"sst2": {"backbone": "x"}}}, "expected backbones: beside datasets"),
        ({"datasets": []}, "datasets is missing"),
        ({"datasets": ["sst2", "sst2"]}, "names a dataset twice"),
        ({"compared": ["CE"]}, "'CE' is not known; known: CE only"),
        ({"compared": []}, "expected one or more of CE only"),
        ({"compared": ["ful"]}, "compared: 'ful' is not known; did you mean 'full'?"),
        ({"compared": "full"}, "compared is 'full'; expected a list of texts."),
        ({"seeds": 0}, "seeds is 0; expected a whole number of at least 1 and at most 100."),
        ({"seeds": True}, "seeds is true; expected a whole number"),
        ({"seeds": 2.0}, "of at least 1 and at most 100 (write 2)."),
        ({"quick": {"seeds": 0}}, ", its quick form: seeds is 0; expected"),
        ({"datasets": 3}, "datasets is 3; expected a name, a list of names, or names with"),
        ({"datasets": {"sst2": 3}}, "datasets.sst2 is 3; expected a mapping of settings."),
    ],
)
def test_what_is_wrong_gets_one_sentence(
    files: StudyFiles, tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    file = files.write("ablation", **changes) if "study" not in changes else _other(files)
    _, error = run("run", file, "--output", tmp_path / "out", code=2)
    assert message in error
    assert len(error.strip().splitlines()) == 1
    assert [mark in ".?" for mark in error.rstrip()[-2:]] == [False, True]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("study", "message"),
    [
        ({"study": "long_context"}, "train is missing; expected a mapping of settings."),
        (
            {"study": "long_context", "train": {"dataset": "sst2"}, "lengths": [50, 3]},
            "lengths.1 is 3; expected a whole number of at least 20 and at most 100,000.",
        ),
        (
            {"study": "long_context", "train": {"dataset": "sst2"}, "lengths": 50},
            "lengths is 50; expected a list of whole numbers of at least 20 and at most 100,000.",
        ),
        (
            {"study": "surgery", "train": {"dataset": "sst2"}, "positive": ["a"], "concept": 3},
            "concept is 3; expected a text or a list of texts, or null (put it in quotes).",
        ),
        (
            {"study": "surgery", "train": {}, "positive": ["a"], "biased": {"rows": 60}},
            "biased.dataset is missing; expected a text.",
        ),
        ({"study": "wic", 3: 4}, "3 is given as a key; expected a text (put it in quotes)."),
        (
            {"study": "ablation", "datasets": {2024: None}},
            "2024 is given as a key; expected a text (put it in quotes).",
        ),
        (
            {"study": "wic", "contexts": {"ag_news": -5}},
            "contexts.ag_news is -5; expected a whole number of at least 1.",
        ),
        (
            {"study": "wic", "contexts": ["ag_news"]},
            "expected a mapping of names to whole numbers of at least 1.",
        ),
    ],
)
def test_a_wrong_value_is_told_with_what_was_expected(
    tmp_path: Path, study: dict[object, object], message: str
) -> None:
    file = tmp_path / "study.yaml"
    file.write_text(yaml.safe_dump(study), encoding="utf-8")
    _, error = run("run", file, "--dry-run", code=2)
    assert error.strip().endswith(message)


def test_a_file_that_is_no_study(tmp_path: Path) -> None:
    file = EXPERIMENTS / "ner" / "conll2003.yaml"
    _, error = run("run", file, code=2)
    assert f"{file} names no study; expected study: and one of experiment, ablation" in error
    assert f"is for: lexical-sae train {file}" in error
    _, error = run("run", tmp_path, code=2)
    assert f"{tmp_path} is a folder; expected a YAML file with a study." in error


def test_a_single_dataset_can_be_named(files: StudyFiles) -> None:
    config = load_study(files.write("ablation", datasets="movie_snippets"))
    assert config.datasets == {"movie_snippets": {}}  # type: ignore[attr-defined]


def test_what_the_command_gives_is_for_the_form_that_is_wanted() -> None:
    """The other form need not take it: both are checked as the file has them."""
    frontier = EXPERIMENTS / "sparsity-frontier.yaml"
    assert load_study(frontier, ["turned=256"]).turned == 256  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="with --set: turned is 256; expected one of target_words"):
        load_study(frontier, ["turned=256"], quick=True)
    assert load_study(EXPERIMENTS / "senses.yaml", ["train=null"]).train is None  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("file", "folder"),
    [
        ("experiments/ablation.yaml", "runs/ablation"),
        ("experiments/cpu/ablation.yaml", "runs/cpu/ablation"),
        ("elsewhere/experiments/paper/ablation.yaml", "runs/paper/ablation"),
        ("mine/ablation.yaml", "runs/ablation"),
    ],
)
def test_files_of_the_same_name_have_folders_of_their_own(file: str, folder: str) -> None:
    assert default_folder(Path(file)) == Path(folder)
    assert default_folder(Path(file), quick=True) == Path(f"{folder}-quick")


def test_from_inside_the_folder_of_experiments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "experiments").mkdir()
    monkeypatch.chdir(tmp_path / "experiments")
    assert default_folder(Path("cpu/ablation.yaml")) == Path("runs/cpu/ablation")


def test_a_folder_holds_one_kind_of_study(files: StudyFiles, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run("run", files.write("ablation", compared=["CE only"]), "--output", out)
    before = {file: file.read_bytes() for file in out.rglob("*") if file.is_file()}
    other = files.write("multi_dataset", recipes=["own"])
    message = f"{out} holds a study of kind ablation, and now it is multi_dataset; change --output"
    assert json.loads((out / "study.json").read_text())["study"] == "ablation"
    _, error = run("run", other, "--output", out, code=2)
    assert message in error
    assert {file: file.read_bytes() for file in out.rglob("*") if file.is_file()} == before
    # folders of earlier versions have the kind in results.json alone
    old = {"format": 1, "train_rows": None, "trained_on": {}}
    (out / "study.json").write_text(json.dumps(old))
    _, error = run("run", other, "--output", out, "--dry-run", code=2)
    assert message in error
    # or nowhere, where a study was stopped; then the same kind goes on
    (out / "results.json").unlink()
    run("run", files.write("ablation", compared=["CE only"]), "--output", out)
    assert json.loads((out / "study.json").read_text())["study"] == "ablation"


def test_the_kind_is_kept_while_a_study_runs(tmp_path: Path) -> None:
    def stopped(run: Path) -> None:
        run.mkdir()
        (run / "config.yaml").write_text("")
        (run / "metrics.json").write_text("{}")
        raise SystemExit(130)

    with pytest.raises(SystemExit), kind_kept(tmp_path / "out", "wic"):
        stopped(tmp_path / "out" / "on-0")
    with pytest.raises(ValueError, match="of kind wic, and now it is surgery"):
        check_folder(tmp_path / "out", "surgery")
    with pytest.raises(ValueError, match="too few"), kind_kept(tmp_path / "no", "wic"):
        raise ValueError("too few")
    assert not (tmp_path / "no").exists()


def test_a_file_is_no_folder(files: StudyFiles, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for output in (tmp_path / "file", tmp_path / "file" / "below"):
        for more in ((), ("--dry-run",)):
            _, error = run("run", files.write("ablation"), "--output", output, *more, code=2)
            assert f"{tmp_path / 'file'} is a file; expected a folder: change --output." in error


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_a_dataset_that_nobody_knows_is_refused_at_once(
    files: StudyFiles, tmp_path: Path, more: tuple[str, ...]
) -> None:
    file, out = files.write("ablation", datasets=[str(files.data), "movie_snipets"]), tmp_path / "o"
    _, error = run("run", file, "--output", out, *more, code=2)
    assert "no dataset is called 'movie_snipets'; the nearest names are movie_snippets" in error
    contexts = ("--set", "contexts={nosuch: 5}", "--set", "pairs=movie_snippets")
    senses = EXPERIMENTS / "senses.yaml"
    _, error = run("run", senses, "--output", out, *contexts, *more, code=2)
    assert "no dataset is called 'nosuch'" in error
    assert not out.exists()


def _without_data(folder: Path, **changes: object) -> Path:
    """A study whose rows are nowhere, and the one that is run instead."""
    train = {"dataset": "movie_snippets"}
    planted = {"study": "surgery", "train": train, "positive": ["positive"], "words": 5}
    planted |= {"planted": {"word": "october", "label": "positive"}, "quick": {"words": 2}}
    (folder / "planted.yaml").write_text(yaml.safe_dump(planted))
    biased = {"dataset": "bias_madlibs", "column": "term"}
    study = {"study": "surgery", "train": train, "positive": ["positive"], "biased": biased}
    study |= {"fallback": "planted.yaml", "quick": {"words": 3}, **changes}
    file = folder / "study.yaml"
    file.write_text(yaml.safe_dump(study))
    return file


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_the_fallback_does_not_take_what_is_meant_for_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    monkeypatch.delenv("LEXICAL_SAE_DATA", raising=False)
    file, other, out = _without_data(tmp_path), tmp_path / "planted.yaml", tmp_path / "out"
    given = ("--set", "biased.rows=100", "--set", "words=4", "--output", out, "--quick", *more)
    _, error = run("run", file, *given, code=2)
    assert "bias_madlibs is not here (LEXICAL_SAE_DATA is not set)" in error
    assert f"{other} is run instead, but it does not take --set biased.rows=100: " in error
    assert error.strip().endswith(
        f"or run: lexical-sae run {other} --quick --set words=4 --output {out}"
    )
    assert not out.exists()


def test_options_that_the_fallback_lacks(tmp_path: Path) -> None:
    missing = ValueError("x is not here; expected x.")
    _without_data(tmp_path)
    other = tmp_path / "planted.yaml"
    text = other.read_text()
    other.write_text(text.replace("quick:\n  words: 2\n", ""))

    def told(*given: str, quick: bool = False) -> str:
        with pytest.raises(ValueError, match="is run instead") as caught:
            check_fallback(missing, other, given, quick=quick, seeds=None, output=None)
        return str(caught.value)

    instead = f"bring the data, or run: lexical-sae run {other}"
    assert told(quick=True).endswith(f"does not take --quick: {instead}")
    apart = told("words=9", "aim=x")
    assert apart.endswith(f"does not take --set aim=x: {instead} --set words=9")
    check_fallback(missing, other, ["words=9"], quick=False, seeds=None, output=None)


def _other(files: StudyFiles) -> Path:
    file = files.write("ablation")
    file.write_text(file.read_text().replace("study: ablation", "study: ablatoin"))
    return file


def test_options_that_do_not_fit(files: StudyFiles) -> None:
    _, error = run("run", code=2)
    assert "No file was given" in error
    _, error = run("run", files.write("ablation"), "--quick", code=2)
    assert "has no quick part" in error
    _, error = run("run", files.write("ablation"), "--set", "quick.seeds=2", code=2)
    assert "quick is " in error


def test_the_plan_touches_nothing(files: StudyFiles, tmp_path: Path) -> None:
    before = sorted(files.folder.rglob("*"))
    file = files.write(
        "ablation",
        datasets=[str(files.data), "hub:nobody/nothing"],
        backbones=[str(files.backbone), "nobody/no-model"],
        compared=["CE only"],
        seeds=2,
        train_rows=50,
    )
    shown, _ = run("run", file, "--dry-run", "--output", tmp_path / "out")
    lines = shown.splitlines()
    assert f"{files.data}: 50 train, 40 validation, 48 test texts, 2 labels" in lines
    assert "hub:nobody/nothing: not here yet; its rows and lengths are known once it is" in lines
    assert sum("parameters, batches of 16 texts" in line for line in lines) == 8
    assert sum("its size is known once it is" in line for line in lines) == 8
    told = f"16 runs, 0 of them finished; the folder is {tmp_path / 'out'}; nothing was trained"
    assert lines[-1].startswith(told)
    assert sorted(files.folder.rglob("*")) == sorted([*before, file])
    assert not (tmp_path / "out").exists()


def test_the_plan_of_a_study_that_is_no_grid() -> None:
    shown, _ = run(
        "run",
        EXPERIMENTS / "surgery-civil.yaml",
        "--dry-run",
        "--set",
        "train.backbone=nobody/none",
    )
    assert shown.splitlines()[-1].startswith("1 run, 0 of them finished")
