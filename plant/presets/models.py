"""Models by name, with the source of every shape: the `config.json` published with each checkpoint on Hugging Face.

Totals: the checkpoint's own tensor count where one is published (`safetensors.total` of the Hugging Face API, or an
audit of the shard headers with block scales left out), else the rounded public figure.
"""

from __future__ import annotations

from dataclasses import replace

from plant.model.attention import GroupedAttention, Indexer, LatentAttention, LinearAttention
from plant.model.moe import Model
from plant.model.precision import Precision

_HF = "huggingface.co/{}/config.json"
_COUNT = "Hugging Face API, safetensors.total of {}"
_AUDIT = "shard headers of {} (packed values unpacked, scales left out)"

DEEPSEEK_V3 = Model(
    name="deepseek-v3",
    width=7168,
    attention=(LatentAttention(layers=61, heads=128),),
    experts=256,
    experts_per_token=8,
    expert_ffn=2048,
    shared_experts=1,
    shared_ffn=2048,
    dense_layers=3,
    dense_ffn=18_432,
    mtp_layers=1,
    mtp_embeddings=True,
    context_tokens=163_840,
    published_total=684_531_386_000,
    published_active=37e9,
    exact_total=True,
    count_source=_COUNT.format("deepseek-ai/DeepSeek-V3"),
    config_source=_HF.format("deepseek-ai/DeepSeek-V3"),
)
DEEPSEEK_V32 = replace(
    DEEPSEEK_V3,
    name="deepseek-v3.2",
    attention=(LatentAttention(layers=61, heads=128, indexer=Indexer(heads=64, head_dim=128, top_tokens=2048)),),
    published_total=685_355_329_792,
    count_source=_COUNT.format("deepseek-ai/DeepSeek-V3.2"),
    config_source=_HF.format("deepseek-ai/DeepSeek-V3.2"),
)
KIMI_K2 = Model(
    name="kimi-k2",
    width=7168,
    attention=(LatentAttention(layers=61, heads=64),),
    experts=384,
    experts_per_token=8,
    expert_ffn=2048,
    shared_experts=1,
    shared_ffn=2048,
    dense_layers=1,
    dense_ffn=18_432,
    vocabulary=163_840,
    context_tokens=262_144,
    published_total=1_026_408_232_448,
    published_active=32e9,
    exact_total=True,
    count_source=_AUDIT.format("moonshotai/Kimi-K2-Instruct"),
    config_source=_HF.format("moonshotai/Kimi-K2.5"),
)
# Released weights: only routed experts are MXFP4, everything else stays bf16 (quantization_config.ignore).
KIMI_K3 = Model(
    name="kimi-k3",
    width=7168,
    attention=(
        LatentAttention(layers=24, heads=96, gate=True),
        LinearAttention(layers=69, heads=96, key_heads=96, decay_rank=128),
    ),
    experts=896,
    experts_per_token=16,
    expert_ffn=3072,
    shared_experts=2,
    shared_ffn=3072,
    dense_layers=1,
    dense_ffn=33_792,
    expert_width=3584,
    vocabulary=163_840,
    context_tokens=1_048_576,
    precision=Precision(dense="bf16", experts="mxfp4", kv_bytes=2.0, dispatch_bytes=1.03125, state_bytes=4.0),
    published_total=2_779_931_837_184,
    published_active=104e9,
    exact_total=True,
    count_source=_AUDIT.format("moonshotai/Kimi-K3") + ", vision tower included",
    config_source=_HF.format("moonshotai/Kimi-K3"),
)
# The essay's Figure 28 (most points below ~80 GB a GPU) is out of reach with bf16 dense weights; fp8 ones allow it.
KIMI_K3_FP8DENSE = replace(
    KIMI_K3,
    name="kimi-k3-fp8dense",
    precision=Precision(dense="fp8", experts="mxfp4", kv_bytes=1.0, dispatch_bytes=1.03125, state_bytes=2.0),
)
KIMI_LINEAR = Model(
    name="kimi-linear-48b",
    width=2304,
    attention=(
        LatentAttention(layers=7, heads=32, q_rank=0),
        LinearAttention(layers=20, heads=32, key_heads=32, gate_rank=128, decay_rank=128),
    ),
    experts=256,
    experts_per_token=8,
    expert_ffn=1024,
    shared_experts=1,
    shared_ffn=1024,
    dense_layers=1,
    dense_ffn=9216,
    vocabulary=163_840,
    context_tokens=1_048_576,
    precision=Precision(dense="bf16", experts="bf16", dispatch_bytes=2.0),
    published_total=48e9,
    published_active=3e9,
    count_source="model card of moonshotai/Kimi-Linear-48B-A3B-Instruct (rounded)",
    config_source=_HF.format("moonshotai/Kimi-Linear-48B-A3B-Instruct"),
)
QWEN3_235B = Model(
    name="qwen3-235b-a22b",
    width=4096,
    attention=(GroupedAttention(layers=94, heads=64, kv_heads=4),),
    experts=128,
    experts_per_token=8,
    expert_ffn=1536,
    vocabulary=151_936,
    context_tokens=262_144,
    published_total=235_093_634_560,
    published_active=22e9,
    exact_total=True,
    count_source=_COUNT.format("Qwen/Qwen3-235B-A22B"),
    config_source=_HF.format("Qwen/Qwen3-235B-A22B"),
)
QWEN35_397B = Model(
    name="qwen3.5-397b-a17b",
    width=4096,
    attention=(
        GroupedAttention(layers=15, heads=32, kv_heads=2, head_dim=256, gate=True),
        LinearAttention(layers=45, heads=64, key_heads=16),
    ),
    experts=512,
    experts_per_token=10,
    expert_ffn=1024,
    shared_experts=1,
    shared_ffn=1024,
    vocabulary=248_320,
    context_tokens=262_144,
    published_total=397e9,
    published_active=17e9,
    count_source="model card of Qwen/Qwen3.5-397B-A17B (rounded)",
    config_source=_HF.format("Qwen/Qwen3.5-397B-A17B"),
)
GPT_OSS_120B = Model(
    name="gpt-oss-120b",
    width=2880,
    attention=(
        GroupedAttention(layers=18, heads=64, kv_heads=8, head_dim=64),
        GroupedAttention(layers=18, heads=64, kv_heads=8, head_dim=64, window=128),
    ),
    experts=128,
    experts_per_token=4,
    expert_ffn=2880,
    vocabulary=201_088,
    context_tokens=131_072,
    expert_bias=True,
    precision=Precision(dense="bf16", experts="mxfp4", dispatch_bytes=2.0),
    published_total=116_829_156_672,
    published_active=5.13e9,
    exact_total=True,
    count_source="model card of openai/gpt-oss-120b",
    config_source=_HF.format("openai/gpt-oss-120b"),
)
GLM_45 = Model(
    name="glm-4.5",
    width=5120,
    attention=(GroupedAttention(layers=92, heads=96, kv_heads=8),),
    experts=160,
    experts_per_token=8,
    expert_ffn=1536,
    shared_experts=1,
    shared_ffn=1536,
    dense_layers=3,
    dense_ffn=12_288,
    vocabulary=151_552,
    mtp_layers=1,
    mtp_embeddings=True,
    context_tokens=131_072,
    published_total=358_337_791_296,
    published_active=32e9,
    exact_total=True,
    count_source=_COUNT.format("zai-org/GLM-4.5"),
    config_source=_HF.format("zai-org/GLM-4.5"),
)
GLM_5 = Model(
    name="glm-5",
    width=6144,
    attention=(
        LatentAttention(
            layers=78,
            heads=64,
            q_rank=2048,
            nope_dim=192,
            value_dim=256,
            indexer=Indexer(heads=32, head_dim=128, top_tokens=2048),
        ),
    ),
    experts=256,
    experts_per_token=8,
    expert_ffn=2048,
    shared_experts=1,
    shared_ffn=2048,
    dense_layers=3,
    dense_ffn=12_288,
    vocabulary=154_880,
    mtp_layers=1,
    context_tokens=202_752,
    published_total=753_864_139_008,
    published_active=40e9,
    exact_total=True,
    count_source=_COUNT.format("zai-org/GLM-5"),
    config_source=_HF.format("zai-org/GLM-5"),
)
MINIMAX_M25 = Model(
    name="minimax-m2.5",
    width=3072,
    attention=(GroupedAttention(layers=62, heads=48, kv_heads=8),),
    experts=256,
    experts_per_token=8,
    expert_ffn=1536,
    vocabulary=200_064,
    context_tokens=196_608,
    published_total=228_703_644_928,
    published_active=10e9,
    exact_total=True,
    count_source=_COUNT.format("MiniMaxAI/MiniMax-M2.5"),
    config_source=_HF.format("MiniMaxAI/MiniMax-M2.5"),
)

MODELS: dict[str, Model] = {
    model.name: model
    for model in (
        DEEPSEEK_V3,
        replace(DEEPSEEK_V3, name="deepseek-r1", count_source=_COUNT.format("deepseek-ai/DeepSeek-R1")),
        DEEPSEEK_V32,
        KIMI_K2,
        KIMI_K3,
        KIMI_K3_FP8DENSE,
        KIMI_LINEAR,
        QWEN3_235B,
        QWEN35_397B,
        GPT_OSS_120B,
        GLM_45,
        GLM_5,
        MINIMAX_M25,
    )
}
