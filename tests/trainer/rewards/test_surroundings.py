"""What a user's reward function sees of the driver, and what is seen of what it prints."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplerl_api.spec.rewards import PythonReward, Reward
from simplerl_trainer.redaction import Redaction
from simplerl_trainer.rewards.messages import Case
from simplerl_trainer.rewards.score import Scorer
from simplerl_trainer.rewards.surroundings import Surroundings

SECRETS = {
    "HF_TOKEN": "hf_abcdefgh",
    "WANDB_API_KEY": "0123456789abcdef",
    "RAY_AUTH_TOKEN": "ray-token",
    "SIMPLERL_REWARD_1_TOKEN": "judge-token",
    "AWS_SECRET_ACCESS_KEY": "cloud-key",
}


def test_tokens_stay_with_the_driver() -> None:
    ours = {**SECRETS, "PATH": "/bin", "LC_ALL": "C.UTF-8", "https_proxy": "http://proxy:3128", "STYLE": "short"}
    seen = Surroundings(["STYLE"]).environment(ours)
    assert not seen.keys() & SECRETS.keys()
    assert seen.items() >= {"PATH": "/bin", "LC_ALL": "C.UTF-8", "https_proxy": "http://proxy:3128"}.items()
    assert seen["STYLE"] == "short", "cluster.env names it"
    assert "STYLE" not in Surroundings().environment(ours)


async def test_a_function_has_no_tokens_and_prints_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    code = tmp_path / "score.py"
    code.write_text(
        "import json, os, sys\n"
        "def score(*, question):\n"
        f"    found = sorted(set(os.environ) & set({list(SECRETS)!r}))\n"
        "    print(f'found {json.dumps(found)}, read {question}')\n"
        "    print('no end', end='', file=sys.stderr)\n"
        "    sys.stdout.flush()\n"
        "    return len(found)\n"
    )
    rewards = [Reward(name="own", python=PythonReward(file=str(code)))]
    # a secret may also be read from a file that the job mounts
    surroundings = Surroundings(["HF_TOKEN"], Redaction(SECRETS.values()))
    case = Case(response="7", answer="7", question=f"{SECRETS['WANDB_API_KEY']}!")
    async with Scorer(rewards, None, 1, surroundings=surroundings) as scorer:
        (score,) = await scorer.score_cases([case])
    assert score.value == 1, "the one that is listed"
    printed = capfd.readouterr().err
    assert f"found {json.dumps(['HF_TOKEN'])}, read ***!\n" in printed
    assert "no end" in printed
    assert not [secret for secret in SECRETS.values() if secret in printed]


@given(st.lists(st.sampled_from(["one", "hf_abcdefgh", "\n", "é", "x" * 70_000]), max_size=12), st.integers(1, 50_000))
def test_a_secret_is_hidden_however_a_stream_is_cut(parts: list[str], size: int) -> None:
    text, redaction = "".join(parts).encode(), Redaction(["hf_abcdefgh"])
    out, held = b"", b""
    for start in range(0, len(text), size):
        lines, held = redaction.lines(held + text[start : start + size])
        out += lines
    assert (out + redaction.lines(held + b"\n")[0]).decode() == redaction.text(text.decode()) + "\n"


def test_bytes_that_are_no_text_stay() -> None:
    assert Redaction(["secret"]).lines(b"\xff secret\nrest") == (b"\xff ***\n", b"rest")
