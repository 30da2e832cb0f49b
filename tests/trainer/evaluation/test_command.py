"""`simplerl eval`: the sentences that a person reads, before any engine starts."""

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from simplerl_trainer.cli import app
from simplerl_trainer.data import known
from simplerl_trainer.models.arithmetic_tokenizer import save_tokenizer

CONFIG = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": 448,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "max_position_embeddings": 128,
    "eos_token_id": 1,
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model that is too large for any machine, one that is none, and questions."""
    monkeypatch.chdir(tmp_path)
    for name, changes in {"model": {}, "huge": {"hidden_size": 8_000_000}, "bert": {"model_type": "bert"}}.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(CONFIG | changes))
        (folder / "model.safetensors").write_bytes(b"")
        save_tokenizer(folder)
    (tmp_path / "q.jsonl").write_text('{"question": "What is 3 + 4?", "answer": "7"}\n')
    (tmp_path / "long.jsonl").write_text(json.dumps({"question": "a" * 1000, "answer": "7"}) + "\n")
    (tmp_path / "keys.jsonl").write_text('{"prompt": "What is 3 + 4?", "gold": "7"}\n')
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "list.jsonl").write_text('["What is 3 + 4?"]\n')
    (tmp_path / "broken.jsonl").write_text("{")
    (tmp_path / "null.jsonl").write_text('{"question": null, "answer": "7"}\n')
    (tmp_path / "nan.jsonl").write_text('{"question": "What is 3 + 4?", "answer": NaN}\n')
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/config.json").write_text("[" * 100_000)
    (tmp_path / "nothing").mkdir()
    for name, missing in (("weightless", "model.safetensors"), ("mute", "tokenizer.json")):
        shutil.copytree(tmp_path / "model", tmp_path / name)
        (tmp_path / name / missing).unlink()
    return tmp_path


def evaluated(*words: str) -> tuple[int, str]:
    """Exit code and all that was said; options that are not given have values that work."""
    usual = {"--model-path": "model", "--data": "q=q.jsonl", "--output": "out", "--max-tokens": "16"}
    usual = {k: v for k, v in usual.items() if k not in words}
    result = CliRunner().invoke(app, ["eval", *(w for pair in usual.items() for w in pair), *words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


LONG = "a" * 300
FAULTS = {
    "no model": (["--model-path", "none"], "--model-path is none, which is no folder: give a Hugging Face folder, a"),
    "another family": (["--model-path", "bert"], "model folder {folder}/bert is of family bert, which cannot be"),
    "no file": (["--data", "q=none.jsonl"], "--data q is none.jsonl, which does not exist: give the path of its file"),
    "no folder of data": (["--data", "gsm8k"], "--data gsm8k says nothing of where it is: write gsm8k=FILE, or give"),
    "wrong keys": (
        ["--data", "q=keys.jsonl"],
        "keys.jsonl line 1 has no key question: set --question-key to the right",
    ),
    "an empty path": (["--data", "q="], "--data q= names no file: write q=FILE"),
    "a folder without questions": (["--data", "q=nothing"], "--data q is nothing, a folder without a file of .jsonl"),
    "a name in a folder that has none": (
        ["--data", "aime24", "--data-folder", "none"],
        "--data aime24 is not in --data-folder none, which is empty or no folder: write aime24=FILE",
    ),
    "a line that is no object": (["--data", "q=list.jsonl"], "list.jsonl line 1 holds a list: give an object"),
    "a line that is no JSON": (["--data", "q=broken.jsonl"], "broken.jsonl line 1 is not JSON ("),
    "a question that is null": (["--data", "q=null.jsonl"], "null.jsonl line 1 holds null under question: give a text"),
    "another file as the model": (["--model-path", "q.jsonl"], "--model-path is q.jsonl, which is no folder: give a"),
    "a folder that is no model": (
        ["--model-path", "nothing"],
        "--model-path is nothing, which has neither a config.json, nor a manifest.json, nor a folder checkpoints: give",
    ),
    "a model without weights": (
        ["--model-path", "weightless"],
        "model folder {folder}/weightless has no *.safetensors: give a folder whose weights are safetensors",
    ),
    "a model without a tokenizer": (
        ["--model-path", "mute"],
        "model folder {folder}/mute has no tokenizer.json: give a whole Hugging Face folder",
    ),
    "nothing to compare with": (
        ["--compare", "none"],
        "--compare none holds no evaluation.json: give the --output of another evaluation",
    ),
    "an output below a file": (
        ["--output", "q.jsonl/out"],
        "--output q.jsonl/out cannot be written (Not a directory): choose another folder",
    ),
    "an empty template": (["--template", ""], "--template is '', which has no {{question}} in it: add it, or name"),
    "no questions": (["--data", "q=empty.jsonl"], "--data q is empty.jsonl, which holds no question: give at least"),
    "an unknown template": (
        ["--template", "qwen"],
        "--template is 'qwen', which has no {{question}} in it: add it, or name qwen-boxed or chat",
    ),
    "no chat template": (["--template", "chat"], "--template is chat, but model folder {folder}/model has no chat"),
    "a model that does not fit": (
        ["--model-path", "huge"],
        "the model of 1024031.82 billion parameters needs at least ",
    ),
    "responses longer than the model": (
        ["--max-tokens", "128"],
        "--max-tokens is 128, and the model {folder}/model takes 128 tokens with the prompt: lower it",
    ),
    "heads that cannot be dealt out": (
        ["--tensor-parallel", "3"],
        "--tensor-parallel is 3, over which the 4 attention heads of model folder {folder}/model cannot be dealt out",
    ),
    "a model's name that no disk takes": (
        ["--model-path", LONG],
        f"{{folder}}/{LONG} cannot be used (File name too long): check",
    ),
    "data's": (["--data", f"q={LONG}"], f"{LONG} cannot be used (File name too long): check its name, its perm"),
    "a folder's of data": (["--data", "q", "--data-folder", LONG], f"{LONG}/q.jsonl cannot be used (File name too"),
    "an output's": (["--output", LONG], f"{LONG}/evaluation.json cannot be used (File name too long): check"),
    "a comparison's": (["--compare", LONG], f"{LONG}/evaluation.json cannot be used (File name too long): check"),
    "an answer that is no number": (
        ["--data", "q=nan.jsonl"],
        "nan.jsonl line 1 holds nan under answer, which is no number: give one, or leave the record out",
    ),
    "a config.json whose lists never end": (
        ["--model-path", "deep"],
        "model folder {folder}/deep has a config.json that cannot be read (maximum recursion depth exceeded",
    ),
    "a folder of something else": (["--output", "model"], "--output model holds something that is no evaluation:"),
}


@pytest.mark.parametrize(("words", "sentence"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_a_sentence_and_exits_with_1(here: Path, words: Sequence[str], sentence: str) -> None:
    code, text = evaluated(*words)
    assert code == 1
    assert text.startswith(sentence.format(folder=here))


@pytest.mark.parametrize(
    ("words", "named"),
    [
        pytest.param(["--n-samples", "0"], "--n-samples", id="no samples"),
        pytest.param(["--n-samples", "-1"], "--n-samples", id="samples below zero"),
        pytest.param(["--n-samples", "many"], "--n-samples", id="samples that are no number"),
        pytest.param(["--seed", "-1"], "--seed", id="a seed below zero"),
        pytest.param(["--seed", "99999999999999"], "--seed", id="a seed that torch does not take"),
        pytest.param(["--max-tokens", "0"], "--max-tokens", id="no tokens"),
        pytest.param(["--engines", "0"], "--engines", id="no engines"),
        pytest.param(["--tensor-parallel", "16"], "--tensor-parallel", id="too many GPUs for an engine"),
        pytest.param(["--top-p", "2"], "--top-p", id="more than all"),
        pytest.param(["--temperature", "nan"], "--temperature", id="no temperature"),
        pytest.param(["--temperature", "3"], "--temperature", id="too hot"),
        pytest.param(["--temperature", "0.005"], "--temperature 0.005: give 0, or 0.01 to 2", id="vLLM would raise it"),
        pytest.param(["--top-p", "0"], "--top-p 0: give more than 0, and at most 1", id="no probability"),
        pytest.param(["--question-key", ""], "--question-key: name a key of the records", id="a key without a name"),
        pytest.param(["--answer-key", ""], "--answer-key: name a key of the records", id="an answer's"),
        pytest.param(["--limit", "0"], "--limit", id="no questions"),
        pytest.param(["--batch-size", "0"], "--batch-size", id="no batch"),
    ],
)
def test_a_wrong_option_exits_with_2_and_names(here: Path, words: Sequence[str], named: str) -> None:
    code, text = evaluated(*words)
    assert code == 2
    assert named in text


def test_questions_that_cannot_be_asked_count_and_start_no_engine(here: Path) -> None:
    code, text = evaluated("--data", "long=long.jsonl", "--n-samples", "2")
    assert code == 0, text
    (row,) = json.loads((here / "out/metrics.json").read_text())
    assert (row["samples"], row["failed"], row["accuracy"]) == (2, 2, 0.0)
    code, text = evaluated("--data", "long=long.jsonl", "--n-samples", "4")
    assert code == 1
    assert text.startswith(
        "--output out was drawn with --n-samples 2, not 4: choose another folder, or remove that one"
    )


PAGE = (Path(__file__).parents[3] / "docs/evaluation.md").read_text("utf-8")


def test_the_page_names_every_option_and_no_other() -> None:
    (command,) = (c for c in typer.main.get_group(app).commands.values() if c.name == "eval")
    options = {o for p in command.params for o in p.opts} - {"--help"}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", PAGE)) == options


@pytest.mark.parametrize("name", known.SETS)
def test_the_page_says_where_a_known_set_has_its_questions_and_answers(name: str) -> None:
    fields = known.SETS[name].fields
    (row,) = (line for line in PAGE.split("\n") if f"`{name}`" in line and line.count("|") == 5)
    assert f"`{fields.question}`" in row
    assert f"`{fields.answer}`" in row
