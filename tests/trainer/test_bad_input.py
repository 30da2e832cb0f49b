"""Bad input, from the command line: each fault is one sentence that names the field or the file, and no GPU is taken.

What single fields may hold is in tests/api/test_validation.py, and what the API server says of it in
tests/operator/test_crd.py; here are the files and models behind the fields.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import pytest
import torch
from safetensors.torch import save_file
from typer.testing import CliRunner

from simplerl_api import yaml12
from simplerl_api.failures import EXIT_CODES, FailureReason
from simplerl_trainer import opening
from simplerl_trainer.cli import app
from simplerl_trainer.models import arithmetic_tokenizer, tiny_shape

CONFIG = {
    "model_type": tiny_shape.FAMILY, "architectures": ["LlamaForCausalLM"], "eos_token_id": 1, **tiny_shape.SHAPE,
}  # fmt: skip
ROWS = [{"question": f"Calculate {n} + 1.", "answer": str(n + 1)} for n in range(20)]


class Place:
    """A folder with a model, questions and a job, each of which a test can spoil."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.model = folder / "model"
        self.model.mkdir()
        arithmetic_tokenizer.save_tokenizer(self.model)
        save_file({"a": torch.zeros(2)}, self.model / "model.safetensors")  # the ranks read it, later
        self.config(CONFIG)
        self.write("train.jsonl", *(json.dumps(row) for row in ROWS))

    def write(self, name: str, *lines: str) -> None:
        (self.folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def config(self, config: dict[str, Any]) -> None:
        (self.model / "config.json").write_text(json.dumps(config))

    def job(self) -> Path:
        document = {
            "apiVersion": "simplerl.io/v1alpha1",
            "kind": "SimpleRLJob",
            "metadata": {"name": "bad"},
            "spec": {
                "model": {"path": str(self.model)},
                "data": {"train": {"file": str(self.folder / "train.jsonl")}, "maxPromptTokens": 16},
                "rewards": [{"name": "math", "math": {}}],
                "rollout": {"promptsPerStep": 8, "samplesPerPrompt": 2, "sampling": {"maxNewTokens": 8}},
                "training": {"steps": 1, "trainBatchSize": 16},
                "cluster": {"gpus": 1, "gpusPerNode": 1, "cpuOnly": True},
            },
        }
        file = self.folder / "job.yaml"
        file.write_text(yaml12.dump(document), encoding="utf-8")
        return file


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    def taken(*_: object) -> NoReturn:
        raise AssertionError("GPUs would be taken now")

    monkeypatch.setattr(opening, "_connect", taken)
    return Place(tmp_path)


def run(place: Place, command: str, settings: Sequence[str] = ()) -> tuple[int, str]:
    words = [command, str(place.job()), *(w for s in settings for w in ("--set", s))]
    result = CliRunner().invoke(app, words + (["--output", str(place.folder / "run")] if command == "train" else []))
    return result.exit_code, result.output


def test_the_untouched_place_is_good_enough_to_take_gpus(place: Place) -> None:
    assert run(place, "validate") == (0, f"{place.folder}/job.yaml: valid\n")
    code, text = run(place, "train")
    assert (code, "GPUs would be taken now" in text) == (EXIT_CODES[FailureReason.INTERNAL], True)


def questions(*lines: str) -> Callable[[Place], None]:
    return lambda place: place.write("train.jsonl", *lines)


def config(**changes: Any) -> Callable[[Place], None]:
    return lambda place: place.config({k: v for k, v in (CONFIG | changes).items() if v is not None})


def removed(name: str) -> Callable[[Place], None]:
    return lambda place: (place.folder / name).unlink()


def nothing(_: Place) -> None:
    """The job alone is at fault."""


def weights(spoilt: Callable[[bytes], bytes]) -> Callable[[Place], None]:
    def spoil(place: Place) -> None:
        file = place.model / "model.safetensors"
        file.write_bytes(spoilt(file.read_bytes()))

    return spoil


def code(*lines: str) -> Callable[[Place], None]:
    return lambda place: place.write("score.py", *lines)


PYTHON = ["rewards=[{name: own, python: {file: FOLDER/score.py}}]"]
TABLE: list[tuple[str, Callable[[Place], None], list[str], str]] = [
    ("no file of questions", removed("train.jsonl"), [],
     "data.train.file is FOLDER/train.jsonl, which does not exist: check it (in pods, cluster.volumes)"),
    ("a folder that is empty", lambda p: (p.folder / "empty").mkdir(), ["data.train.file=FOLDER/empty"],
     "data.train.file is FOLDER/empty, a folder without any .jsonl, .json or .parquet file: check it "
     "(in pods, cluster.volumes)"),
    ("an empty data set", questions(), [], "data.train.file FOLDER/train.jsonl holds no question: give at least one"),
    ("a line that is no JSON", questions('{"question": "1 + 1", "answer": "2"}', '{"question": "1 +'), [],
     "FOLDER/train.jsonl line 2 is not JSON (Unterminated string starting at at character 14): correct it"),
    ("a line that is no object", questions("[1]"), [],
     "FOLDER/train.jsonl line 1 holds a list: give an object with question and an answer"),
    ("other keys", questions('{"problem": "1 + 1", "answer": "2"}'), [],
     "FOLDER/train.jsonl line 1 has no key question: set data.fields.question to the right one of its keys "
     "(answer, problem)"),
    ("only prompts that are too long", nothing, ["data.maxPromptTokens=3"],
     "none of the 20 questions of data.train is left: 0 also stand in an evaluation data set and 20 make prompts over "
     "data.maxPromptTokens 3, the shortest of 7 tokens: give other questions or a larger limit"),
    ("only held-out questions", nothing, ["evaluation={datasets: [{name: same, file: FOLDER/train.jsonl}]}"],
     "none of the 20 questions of data.train is left: 20 also stand in an evaluation data set and 0 make prompts over "
     "data.maxPromptTokens 16: give other questions or a larger limit"),
    ("a kind of file that is not read", lambda p: p.write("train.csv", "a,b"), ["data.train.file=FOLDER/train.csv"],
     "data.train.file is FOLDER/train.csv: give a .jsonl file with an object on each line, a .json file of one array, "
     "a .parquet file, or a folder of them"),
    ("no chat template", nothing, ["data.promptTemplate=chat"],
     "data.promptTemplate is chat, but model folder FOLDER/model has no chat template: give a literal text with "
     "{question} in it"),
    ("no model folder", nothing, ["model.path=/nowhere"],
     "model folder /nowhere does not exist: check model.path (in pods, cluster.volumes)"),
    ("no config.json", removed("model/config.json"), [],
     "model folder FOLDER/model has no config.json: give a whole Hugging Face folder"),
    ("no tokenizer", removed("model/tokenizer.json"), [],
     "model folder FOLDER/model has no tokenizer.json: give a whole Hugging Face folder"),
    ("no weights", removed("model/model.safetensors"), [],
     "model folder FOLDER/model has no *.safetensors: give a folder whose weights are safetensors"),
    ("weights of which a part is missing", weights(lambda whole: whole[:-1]), [],
     "model: FOLDER/model/model.safetensors is not a safetensors file (it has 71 bytes, and its header says 72): copy "
     "it anew"),
    ("weights that were never fetched", weights(lambda whole: b"version https://git-lfs.github.com/spec/v1\n"), [],
     "model: FOLDER/model/model.safetensors is not a safetensors file (it is a pointer of Git LFS, without the "
     "weights): copy it anew"),
    ("a reward model's weights of which a part is missing", weights(lambda whole: whole[:70]),
     ["rewards[1]={name: judge, model: {path: FOLDER/model}}"],
     "rewards[1].model.path: FOLDER/model/model.safetensors is not a safetensors file (it has 70 bytes, and its header "
     "says 72): copy it anew"),
    ("an unsupported family", config(model_type="mixtral"), [],
     "model folder FOLDER/model is of family mixtral, which cannot be trained: use Qwen2, Qwen2.5, Qwen3 and Llama"),
    ("a classifier", config(architectures=["LlamaForSequenceClassification"]), [],
     "model folder FOLDER/model is a LlamaForSequenceClassification, not a language model: use one whose architecture "
     "is LlamaForCausalLM"),
    ("a configuration without its numbers", config(num_attention_heads=None), [],
     "model folder FOLDER/model cannot be used: its config.json has num_attention_heads None: give a model folder "
     "where it is a number"),
    ("quantized weights", config(quantization_config={"quant_method": "awq"}), [],
     "model folder FOLDER/model holds weights quantized by awq: give the unquantized model"),
    ("no end of sequence", lambda p: (config(eos_token_id=None)(p), removed("model/tokenizer_config.json")(p)), [],
     "model folder FOLDER/model names no end-of-sequence token: set eos_token_id in its generation_config.json"),
    ("a context that is too short", nothing, ["rollout.sampling.maxNewTokens=600"],
     "model folder FOLDER/model takes 512 tokens, less than data.maxPromptTokens 16 + rollout.sampling.maxNewTokens "
     "600: shorten them, or use another model"),
    ("an evaluation beyond the context", nothing,
     ["evaluation={maxNewTokens: 600, datasets: [{name: a, file: FOLDER/train.jsonl}]}"],
     "model folder FOLDER/model takes 512 tokens, less than data.maxPromptTokens 16 + evaluation.maxNewTokens 600: "
     "shorten them, or use another model"),
    ("a generator that is not there", nothing, ["data.train={reasoningGym: {dataset: basic_arithmetics}}"],
     "data.train.reasoningGym.dataset is basic_arithmetics, which reasoning-gym does not have: did you mean "
     "basic_arithmetic or bitwise_arithmetic or decimal_arithmetic?"),
    ("no reward function file", nothing, PYTHON,
     "rewards[0].python.file is FOLDER/score.py, which does not exist: check it (in pods, cluster.volumes)"),
    ("a reward function that is no Python", code("def score(:"), PYTHON,
     "rewards[0].python.file: FOLDER/score.py is not Python (invalid syntax in line 1): correct it"),
    ("a reward file without the function", code("def other(response):", "    return 1.0"), PYTHON,
     "rewards[0].python.file: FOLDER/score.py defines no function score (it defines other): add it, or name another "
     "one"),
    ("a reward file that ends its process", code("import os", "def score(response): return 1.0", "os._exit(3)"), PYTHON,
     "rewards[0].python: the process that imports FOLDER/score.py ended with exit code 3 at its start: mend it"),
    ("a reward file that raises", code("import no_such_module", "def score(response): return 1.0"), PYTHON,
     "rewards[0].python.file: FOLDER/score.py cannot be imported (line 1: ModuleNotFoundError: No module named "
     "'no_such_module'): correct it"),
    ("a service that is not there", nothing,
     ["rewards=[{name: judge, http: {url: 'http://127.0.0.1:9/score', retries: 0, timeoutSeconds: 5}}]"],
     "rewards[0].http.url is http://127.0.0.1:9/score, which cannot be reached (Cannot connect to host 127.0.0.1:9 "
     "ssl:default [Connect call failed ('127.0.0.1', 9)]) when asked for {\"samples\": []}: start the service, or "
     "correct the url"),
]  # fmt: skip


@pytest.mark.parametrize(("spoil", "settings", "sentence"), [t[1:] for t in TABLE], ids=[t[0] for t in TABLE])
def test_a_run_ends_before_gpus_are_taken_with_one_sentence(
    place: Place, spoil: Callable[[Place], None], settings: Sequence[str], sentence: str
) -> None:
    spoil(place)
    code, text = run(place, "train", [s.replace("FOLDER", str(place.folder)) for s in settings])
    last = json.loads(text.strip().splitlines()[-1])
    assert (last["message"], last["reason"]) == ("run failed", "InvalidInput"), text
    assert last["why"] == sentence.replace("FOLDER", str(place.folder))
    assert code == EXIT_CODES[FailureReason.INVALID_INPUT]


PLANS = [
    ("an unsupported family", config(model_type="mixtral"), "is of family mixtral, which cannot be trained: use Qwen2"),
    ("a config.json without a number", config(hidden_size=None), "config.json has hidden_size None"),
    ("a config.json that is not JSON", lambda p: p.write("model/config.json", "{"), "cannot be read"),
    ("too little memory for the model", config(hidden_size=8192, num_hidden_layers=80, intermediate_size=28672),
     "training needs"),
]  # fmt: skip


@pytest.mark.parametrize(("spoil", "sentence"), [p[1:] for p in PLANS], ids=[p[0] for p in PLANS])
def test_a_plan_says_what_will_not_do(place: Place, spoil: Callable[[Place], None], sentence: str) -> None:
    spoil(place)
    result = CliRunner().invoke(app, ["plan", str(place.job()), "-o", "json"])
    assert result.exit_code == 0, result.output
    (warning,) = [w for w in json.loads(result.output)["warnings"] if sentence in w]
    assert "\n" not in warning


VALIDATED: list[tuple[str, Callable[[Place], None], str]] = [
    ("code that is not here may be in the containers", nothing, ""),
    ("code that is whole", code("def score(response): return 1.0"), ""),
    ("code that is never run by validating", code("raise SystemExit(3)", "def score(response): return 1.0"), ""),
    ("code that is no Python", code("def score(:"),
     "spec.rewards[0].python.file: FOLDER/score.py is not Python (invalid syntax in line 1): correct it"),
    ("code without the function", code("import os"),
     "spec.rewards[0].python.file: FOLDER/score.py defines no function score (it defines nothing): add it, or name "
     "another one"),
    ("a function of other arguments", code("def score(completion): return 1.0"),
     "spec.rewards[0].python.file: FOLDER/score.py defines score with the parameter completion, which is not one of "
     "prompt, question, response, answer, record, truncated"),
]  # fmt: skip


@pytest.mark.parametrize(("spoil", "sentence"), [v[1:] for v in VALIDATED], ids=[v[0] for v in VALIDATED])
def test_what_is_on_this_machine_is_validated_too(place: Place, spoil: Callable[[Place], None], sentence: str) -> None:
    spoil(place)
    said = run(place, "validate", [s.replace("FOLDER", str(place.folder)) for s in PYTHON])
    expected = (1, sentence.replace("FOLDER", str(place.folder))) if sentence else (0, "valid")
    assert said == (expected[0], f"{place.folder}/job.yaml: {expected[1]}\n")
