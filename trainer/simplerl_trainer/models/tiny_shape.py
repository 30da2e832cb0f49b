"""The numbers of the toy model, where nothing needs torch."""

from simplerl_trainer.models.arithmetic_tokenizer import SIZE

FAMILY = "llama"
"""Not a Qwen2: transformers gives that family its own tokenizer, whatever tokenizer.json says."""
SHAPE = {
    "vocab_size": SIZE,
    "hidden_size": 128,
    "intermediate_size": 384,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,  # 32 a head: the smallest that vLLM's CPU attention has
    "num_key_value_heads": 4,
    "max_position_embeddings": 512,
    "tie_word_embeddings": True,
}
"""As config.json names them."""
