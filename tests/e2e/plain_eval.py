"""plain_eval.py FOLDER N: sampled accuracy of an exported model on N other questions, by transformers alone."""

import sys

import reasoning_gym
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

CONFIG = {
    "min_terms": 4, "max_terms": 4, "min_digits": 1, "max_digits": 1, "operators": ["+"],
    "allow_parentheses": False, "allow_negation": False, "format_style": "simple",
}  # fmt: skip


def main(folder: str, count: int) -> None:
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    questions = reasoning_gym.create_dataset("basic_arithmetic", size=count, seed=500_000, **CONFIG)
    right = 0
    for item in questions:
        prompt = tokenizer(item["question"], return_tensors="pt", add_special_tokens=False)
        drawn = model.generate(**prompt, do_sample=True, temperature=1.0, top_k=0, top_p=1.0, max_new_tokens=8)
        text = tokenizer.decode(drawn[0, prompt["input_ids"].shape[1] :], skip_special_tokens=True)
        right += text.strip() == str(item["answer"])
    print(right / count)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
