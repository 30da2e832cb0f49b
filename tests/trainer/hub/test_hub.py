"""Models and data sets of a hub, by its real clients from a hub on this machine."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from tests.trainer.hub.server import TOKEN, Hub, serving

from simplerl_trainer import hub as hubs
from simplerl_trainer.models.arithmetic_tokenizer import EOS, make_tokenizer, save_tokenizer

ROOT = Path(__file__).parents[3]
CARD = b"""---
configs:
- config_name: main
  data_files:
  - split: train
    path: main/train-*
  - split: test
    path: main/test-*
---
"""


def parquet(**columns: list[Any]) -> bytes:
    out = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), out)
    return out.getvalue()


@pytest.fixture(scope="module")
def model_files(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, bytes]:
    folder = tmp_path_factory.mktemp("model")
    save_tokenizer(folder)
    config = {
        "model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "vocab_size": 300,
        "max_position_embeddings": 64, "eos_token_id": make_tokenizer().token_to_id(EOS),
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    files = {file.name: file.read_bytes() for file in folder.iterdir()}
    return files | {
        "model.safetensors": b"w" * 1000, "onnx/model.onnx": b"o", "pytorch_model.bin": b"p", "README.md": b"# m\n",
    }  # fmt: skip


@pytest.fixture(scope="module")
def hub(model_files: Mapping[str, bytes]) -> Iterator[Hub]:
    with serving() as found:
        found.add("model", "org/m", model_files)
        found.add("model", "org/bin", {k: v for k, v in model_files.items() if not k.endswith(".safetensors")})
        found.add("model", "org/gated", model_files, gated=True)
        found.add("model", "org/private", model_files, private=True)
        found.add("dataset", "org/lines", {"train.jsonl": b'{"question": "a", "answer": "1", "level": 3}\n'})
        sets = {
            "README.md": CARD,
            "main/train-00000-of-00001.parquet": parquet(question=["a", "b"], answer=["1", "2"]),
            "main/test-00000-of-00001.parquet": parquet(question=["t"], answer=["3"]),
        }
        found.add("dataset", "org/sets", sets)
        found.add("dataset", "org/secret", sets, private=True)
        found.add("dataset", "org/pictures", {"README.md": b"# nothing\n"})
        yield found


def ask(hub: Hub | str, home: Path, *questions: dict[str, Any], **variables: str) -> list[Any]:
    """The answers of a process with an environment of its own."""
    url = hub if isinstance(hub, str) else hub.url
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "HUGGING"))}
    environment = {**inherited, "HF_ENDPOINT": url, "HF_HOME": str(home), "HOME": str(home), **variables}
    environment |= {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.trainer.hub.client"], input=json.dumps(questions), text=True,
        capture_output=True, env=environment, cwd=ROOT, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert TOKEN not in done.stdout + done.stderr
    found: list[Any] = json.loads(done.stdout.splitlines()[-1])
    return found


MODEL = {"ask": "model", "name": "org/m"}
MODEL_FILES = ["chat_template.jinja", "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]


def test_a_model_comes_by_its_commit_and_once(hub: Hub, tmp_path: Path, model_files: Mapping[str, bytes]) -> None:
    repository = hub.repositories["model", "org/m"]
    first = repository.refs["main"]
    hub.asked.clear()
    (light,) = ask(hub, tmp_path, MODEL | {"weights": False})
    assert light["commit"] == first
    assert "model.safetensors" not in light["files"]
    assert not hub.downloads(".safetensors"), "a driver needs no weights"
    (whole,) = ask(hub, tmp_path, MODEL)
    assert whole["folder"] == light["folder"]
    assert set(whole["files"]) == set(model_files) - {"onnx/model.onnx", "pytorch_model.bin", "README.md"}
    hub.asked.clear()
    ask(hub, tmp_path, MODEL)
    assert not hub.downloads(), "what is in the cache is not downloaded again"

    second = repository.commit({**model_files, "model.safetensors": b"v" * 1000})
    newest, pinned, named = ask(hub, tmp_path, MODEL, MODEL | {"commit": first}, MODEL | {"revision": first})
    assert [a["commit"] for a in (newest, pinned, named)] == [second, first, first]
    bytes_of = {(Path(a["folder"]) / "model.safetensors").read_bytes()[:1] for a in (pinned, named)}
    assert bytes_of == {b"w"}, "a later attempt trains the commit of the first"


def test_repositories_that_cannot_be_used_are_sentences(hub: Hub, tmp_path: Path) -> None:
    asked: dict[str, dict[str, Any]] = {
        f"model.hub.name is org/none, which {hub.url} does not have or hides from readers without a token (HF_TOKEN): "
        "check the name and model.hub.tokenSecretRef": {"ask": "model", "name": "org/none"},
        f"model.hub.name is org/private, which {hub.url} does not have or hides from readers without a token "
        "(HF_TOKEN): check the name and model.hub.tokenSecretRef": {"ask": "model", "name": "org/private"},
        "model.hub.name is org/gated, a gated repository that needs a token (HF_TOKEN): accept its terms and give "
        "model.hub.tokenSecretRef": {"ask": "model", "name": "org/gated"},
        "model.hub.revision is v9, which org/m does not have: give one of its branches, tags or commits": {
            "ask": "model", "name": "org/m", "revision": "v9"
        },
        "model.hub.name is org/bin, which has no *.safetensors: give a model whose weights are safetensors": {
            "ask": "model", "name": "org/bin"
        },
        f"data.train.hub.name is org/none, which {hub.url} does not have or hides from readers without a token "
        "(HF_TOKEN): check the name and data.train.hub.tokenSecretRef": {"ask": "data", "name": "org/none"},
        "data.train.hub.split is valid, which org/sets does not have (Unknown split \"valid\". Should be one of "
        "['train', 'test'].): give another": {"ask": "data", "name": "org/sets", "split": "valid"},
        "data.train.hub.config is x, which does not suit org/sets (BuilderConfig 'x' not found. Available: ['main']): "
        "give another": {"ask": "data", "name": "org/sets", "config": "x"},
        "data.train.hub.name is org/pictures, which cannot be read as a data set (": {
            "ask": "data", "name": "org/pictures"
        },
    }  # fmt: skip
    faults = [a["fault"] for a in ask(hub, tmp_path, *asked.values())]
    for fault, sentence in zip(faults, asked, strict=True):
        assert fault.startswith(sentence)


def test_the_token_opens_what_is_private_or_gated(hub: Hub, tmp_path: Path) -> None:
    hub.asked.clear()
    gated, private, data, none = ask(
        hub, tmp_path, {"ask": "model", "name": "org/gated"}, {"ask": "model", "name": "org/private"},
        {"ask": "data", "name": "org/secret", "split": "test"}, {"ask": "model", "name": "org/none"}, HF_TOKEN=TOKEN,
    )  # fmt: skip
    assert "model.safetensors" in gated["files"]
    assert "model.safetensors" in private["files"]
    assert data["questions"] == [["t", "3", {"question": "t", "answer": "3"}]]
    assert none["fault"] == (
        f"model.hub.name is org/none, which {hub.url} does not have or hides from the token in HF_TOKEN: check the "
        "name and model.hub.tokenSecretRef"
    )
    assert not [path for _, path, known in hub.asked if not known and path.startswith(("/api/models", "/api/datasets"))]


def test_data_sets_are_read_by_configuration_split_and_commit(hub: Hub, tmp_path: Path) -> None:
    repository = hub.repositories["dataset", "org/lines"]
    first = repository.refs["main"]
    lines, train, test, part = ask(
        hub, tmp_path, {"ask": "data", "name": "org/lines"}, {"ask": "data", "name": "org/sets"},
        {"ask": "data", "name": "org/sets", "config": "main", "split": "test"},
        {"ask": "data", "name": "org/sets", "split": "train[1:]"},
    )  # fmt: skip
    assert lines == {"commit": first, "questions": [["a", "1", {"question": "a", "answer": "1", "level": 3}]]}
    assert [q[0] for q in train["questions"]] == ["a", "b"]
    assert [q[0] for q in test["questions"]] == ["t"]
    assert [q[0] for q in part["questions"]] == ["b"]
    repository.commit({"train.jsonl": b'{"question": "new", "answer": "1"}\n'})
    newest, before = ask(
        hub, tmp_path, {"ask": "data", "name": "org/lines"}, {"ask": "data", "name": "org/lines", "revision": first}
    )
    assert [a["questions"][0][0] for a in (newest, before)] == ["new", "a"]


# fault 41 (prime-rl#2897, OpenThoughts-Agent#130): HF_HUB_OFFLINE did not reach the workers
@pytest.mark.long
def test_offline_holds_for_the_driver_and_for_nodes_alike(hub: Hub, tmp_path: Path) -> None:
    node = {"ask": "node", "name": "org/m"}
    hub.asked.clear()
    (online,) = ask(hub, tmp_path, node, HF_HUB_OFFLINE="0")
    assert "model.safetensors" in online["files"]
    assert hub.downloads(".safetensors")
    hub.asked.clear()
    data, cached, other, unread = ask(
        hub, tmp_path, {"ask": "data", "name": "org/sets"}, node, {"ask": "model", "name": "org/private"}, MODEL,
        HF_HUB_OFFLINE="1", HF_TOKEN=TOKEN,
    )  # fmt: skip
    assert hub.asked == []
    assert cached["files"] == online["files"] == unread["files"]
    assert cached["variables"]["HF_HUB_OFFLINE"] == "1"
    assert TOKEN not in json.dumps(cached["variables"])
    for answer, field in ((data, "data.train.hub.name is org/sets"), (other, "model.hub.name is org/private")):
        assert answer["fault"] == (
            f"{field}, which is not in the cache {tmp_path}/hub while HF_HUB_OFFLINE is set: unset it, or fill the "
            "cache"
        )


def test_a_hub_that_cannot_be_reached_is_a_sentence(tmp_path: Path) -> None:
    url = "http://127.0.0.1:9"
    model, data = ask(url, tmp_path, MODEL, {"ask": "data", "name": "org/sets"})
    assert model["fault"].startswith(f"model.hub.name is org/m, but {url} cannot be reached (")
    assert model["fault"].endswith("): check the pods' network, or HF_ENDPOINT")
    assert data["fault"].startswith(f"data.train.hub.name is org/sets, but {url} cannot be reached (")


def test_what_nodes_are_told_of_the_hub_holds_no_token() -> None:  # fault 41 too: HF_HUB_OFFLINE reaches them
    driver = {"HF_ENDPOINT": "http://mirror", "HF_TOKEN": TOKEN, "HF_HUB_OFFLINE": "1", "OTHER": "1"}
    bars = {"HF_HUB_DISABLE_PROGRESS_BARS": "1"}
    assert hubs.environment(driver) == {"HF_ENDPOINT": "http://mirror", "HF_HUB_OFFLINE": "1", **bars}
    assert hubs.environment({}) == {"HF_HUB_OFFLINE": "0", **bars}
