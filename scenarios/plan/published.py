"""Public measurements of mixture-of-experts serving, each with its source; none is excluded for its error.

`decode`, `prefill`: tokens per second and accelerator. `tpot`: seconds per token of a lone or disaggregated decode.
`fill`: seconds of a lone prompt through all stages.
`served_tpot`, `served_ttft`: means under a load generator, predicted through the queue of `serving.closed_loop`.
`sets` names the constant that a row was used to set; such rows are marked and errors are also given without them.
`assumed` names the assumptions where the source is incomplete.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from plant.model.placement import Placement
from plant.model.precision import Precision
from scenarios.plan.published_first_tokens import FIRST_TOKEN_MS

FP8 = Precision()
FP8_KV8 = Precision(kv_bytes=1.0)
# NVFP4 checkpoints keep attention in bf16 (hf_quant_config.json, exclude_modules) and the KV cache in fp8.
NVFP4 = Precision(dense="nvfp4", attention="bf16", experts="nvfp4", kv_bytes=1.0, dispatch_bytes=0.5625)
NVFP4_ALL = replace(NVFP4, attention="nvfp4")
NVFP4_BF16SHARED = replace(NVFP4, dense="bf16")
INT4 = Precision(dense="bf16", experts="int4", dispatch_bytes=2.0)
MXFP4 = Precision(dense="bf16", experts="mxfp4", dispatch_bytes=1.03125)
MXFP4_HOPPER = replace(MXFP4, experts="mxfp4_a16", dispatch_bytes=2.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measurement and the setting that it was taken in."""

    name: str
    kind: str
    model: str
    hardware: str
    engine: str
    precision: Precision
    place: Placement
    measured: float
    batch: float = 1.0
    context: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 1024
    concurrency: int = 1
    spread_ratio: float = 0.8
    requests_per_slot: int = 10
    draft_tokens: int = 0
    accepted_tokens: float = 1.0
    sets: str = ""
    assumed: str = ""
    source: str = ""

    @property
    def configuration(self) -> str:
        """Rows of one configuration share model, hardware, engine, precision and placement."""
        p = self.precision
        return f"{self.model}/{self.hardware}/{self.engine}/{p.attention}-{p.dense}-{p.experts}/{self.place.label()}"


@dataclass(slots=True)
class _Bench:
    rows: list[Row] = field(default_factory=list)

    def add(self, base: Row, **changes: object) -> None:
        self.rows.append(replace(base, **changes))  # type: ignore[arg-type]  # field names are checked by `replace`

    def served(self, base: Row, *points: tuple[int, float]) -> None:
        """Add one row per (concurrency, milliseconds per token), and its first token where one was published."""
        first = FIRST_TOKEN_MS.get(base.name, ())
        for i, (concurrency, tpot_ms) in enumerate(points):
            name = f"{base.name} c{concurrency}"
            self.add(base, name=name, concurrency=concurrency, measured=tpot_ms * 1e-3)
            if first:
                # Callers whose answers all end together would wait for each other's prompts: none does for long.
                self.add(base, name=f"{name} first token", kind="served_ttft", concurrency=concurrency,
                         spread_ratio=0.8, measured=first[i] * 1e-3, sets="first token of its engine")  # fmt: skip


_DEEPSEEK = "github.com/deepseek-ai/profile-data README; github.com/deepseek-ai/open-infra-index day 6"
_LMSYS_H100 = "lmsys.org blog 2025-05-05 (large-scale EP on 96 H100)"
_LMSYS_K2 = "lmsys.org blog 2025-07-20 (Kimi K2 on H200)"
_LMSYS_GB200 = "lmsys.org blog 2025-09-25 (GB200 NVL72, part II)"
_VLLM_GB200 = "vLLM blog 2026-02-03 (GB200 wide EP)"
_LMSYS_LONG = "lmsys.org blog 2026-02-19 (DeepSeek-R1 on GB300, long context)"
_K3_B300 = "github.com/sgl-project/sglang pull request 37878"
_K3_GB200 = "github.com/sgl-project/sglang pull request 32592"
_IX = (
    "SemiAnalysis InferenceX dumps 2026-03-25 to 04-27, as shipped in aiconfigurator 0.12.0 systems/silicon_sample.csv"
)
_TBO = "two-batch overlap loss, hot ratio"


def _wide(bench: _Bench) -> None:
    decode = Row(
        name="",
        kind="decode",
        model="deepseek-v3",
        hardware="h800",
        engine="wide-ep-2025",
        precision=FP8,
        place=Placement(dp=128, hot_ratio=1.0),
        measured=0.0,
        sets=_TBO,
        source=_DEEPSEEK,
    )
    bench.add(decode, name="DSV3 H800 decode EP128", batch=128, context=4096, measured=2325)
    bench.add(
        decode,
        name="DSV3 H800 decode EP144, fleet",
        place=Placement(dp=144, hot_ratio=1.25, redundant_experts=32),
        batch=88,
        context=4989,
        measured=1850,
        assumed="batch = 1,850 tok/s over 21 tok/s per user",
    )
    h100 = replace(
        decode, hardware="h100", place=Placement(dp=72, hot_ratio=1.25, redundant_experts=32), source=_LMSYS_H100
    )
    bench.add(h100, name="DSV3 H100 decode EP72", batch=256, context=2050, measured=2785)
    fill = replace(decode, kind="prefill", place=Placement(dp=32, hot_ratio=1.0), batch=4, input_tokens=4096)
    bench.add(fill, name="DSV3 H800 prefill EP32 4k", measured=7839)
    fill = replace(fill, hardware="h100", source=_LMSYS_H100)
    bench.add(fill, name="DSV3 H100 prefill EP32 4k, perfect balance", measured=7417)
    fill = replace(fill, place=Placement(dp=32, hot_ratio=1.6))
    for batch, tokens, measured in ((4, 4096, 6288), (8, 2048, 6818), (16, 1024, 7209)):
        name = f"DSV3 H100 prefill EP32 {tokens // 1024}k"
        bench.add(fill, name=name, batch=batch, input_tokens=tokens, measured=measured)
    k2 = replace(h100, model="kimi-k2", hardware="h200", place=Placement(dp=96, hot_ratio=1.25), source=_LMSYS_K2)
    bench.add(k2, name="K2 H200 decode EP96", batch=480, context=2050, measured=3000)
    k2_fill = replace(k2, kind="prefill", place=Placement(dp=32, hot_ratio=1.6), batch=8, input_tokens=2000)
    bench.add(k2_fill, name="K2 H200 prefill EP32 2k", measured=7000)


def _rack(bench: _Bench) -> None:
    fp4 = Row(
        name="",
        kind="decode",
        model="deepseek-v3",
        hardware="gb200-nvl72",
        engine="rack-2025",
        precision=NVFP4_ALL,
        place=Placement(dp=48, hot_ratio=1.25, redundant_experts=32),
        measured=0.0,
        context=2050,
        source=_LMSYS_GB200,
    )
    bench.add(fp4, name="DSV3 GB200 decode EP48 fp4", batch=1408, measured=13_386)
    bench.add(fp4, name="DSV3 GB200 decode EP48 fp4, b768", batch=768, measured=12_047, assumed="10 % below the above")
    bench.add(
        fp4, name="DSV3 GB200 decode EP48 fp8", batch=768, precision=FP8, measured=9087, assumed="batch 768 per GPU"
    )
    fill = replace(fp4, kind="prefill", place=Placement(dp=2), batch=8, input_tokens=2048)
    bench.add(fill, name="DSV3 GB200 prefill EP2 fp4", measured=26_156)
    bench.add(fill, name="DSV3 GB200 prefill EP4 fp8", place=Placement(dp=4), precision=FP8, measured=18_471)
    bench.add(fill, name="DSV3 GB200 prefill EP2 fp4, vLLM", measured=26_200, source=_VLLM_GB200)
    bench.add(
        fp4,
        name="DSV3 GB200 decode EP8 fp4, vLLM",
        place=Placement(dp=8, hot_ratio=1.15),
        batch=768,
        context=3072,
        measured=10_100,
        assumed="batch 768 per GPU",
        source=_VLLM_GB200,
    )


def _long(bench: _Bench) -> None:
    gb300 = Row(
        name="DSR1 GB300 prefill PP4 128k",
        kind="fill",
        model="deepseek-r1",
        hardware="gb300-nvl72",
        engine="sglang-2026h1",
        precision=NVFP4_ALL,
        place=Placement(pp=4),
        measured=15.2,
        input_tokens=131_072,
        assumed="one chunk, as its dynamic chunks are another row of the source",
        source=_LMSYS_LONG,
    )
    bench.add(gb300)
    bench.add(gb300, name="DSR1 GB200 prefill PP4 128k", hardware="gb200-nvl72", measured=18.6)


def _k3(bench: _Bench) -> None:
    b300 = Row(
        name="K3 B300 TP8",
        kind="served_tpot",
        model="kimi-k3",
        hardware="b300",
        engine="fused-2026h2",
        precision=MXFP4,
        place=Placement(tp=8, ep=1),
        measured=0.0,
        input_tokens=8192,
        spread_ratio=1.0,
        # SGLang's cookbook runs 80 prompts at 16 in flight, 500 at 100: five per slot, all of one length.
        requests_per_slot=5,
        source=_K3_B300,
    )
    bench.served(replace(b300, sets="launch ratio of fused-2026h2"), (1, 8.51))
    bench.served(b300, (16, 19.47), (64, 40.19))
    for c, ms in ((1, 378.0), (16, 3539.0), (64, 11_635.0)):
        name = f"K3 B300 TP8 c{c} first token"
        bench.add(b300, kind="served_ttft", name=name, concurrency=c, measured=ms * 1e-3)
    bench.served(
        replace(b300, name="K3 B300 TP8 nvfp4", precision=replace(MXFP4, experts="nvfp4", dispatch_bytes=0.5625)),
        (1, 10.12),
        (16, 20.94),
        (64, 41.55),
    )
    bench.served(
        replace(
            b300,
            name="K3 B300 TP8 DSPARK",
            draft_tokens=7,
            accepted_tokens=3.84,
            assumed="3.84 accepted of 7 + 1, the published AgentX value",
        ),
        (1, 2.84),
        (16, 9.88),
        (64, 24.47),
    )
    day0 = replace(b300, hardware="gb200-nvl72", engine="sglang-k3-day0", kind="tpot", context=8704, source=_K3_GB200)
    bench.add(day0, name="K3 GB200 decode TP8 PP2 c8", place=Placement(tp=8, pp=2, ep=1), batch=4, measured=1 / 57.7)
    bench.add(day0, name="K3 GB200 decode TP16 c8", place=Placement(tp=16, ep=1), batch=8, measured=1 / 40.7)
    fill = replace(day0, kind="prefill", input_tokens=8192, batch=1)
    for label, place, points in (
        ("PP16 TP1", Placement(pp=16), ((4, 1227), (16, 3978), (64, 4552))),
        ("PP8 TP2", Placement(pp=8, tp=2, ep=1), ((4, 961), (16, 2967), (64, 3773))),
    ):
        for c, measured in points:
            bench.add(fill, name=f"K3 GB200 prefill {label} c{c}", place=place, concurrency=c, measured=measured)


def _served(bench: _Bench) -> None:
    base = Row(
        name="",
        kind="served_tpot",
        model="deepseek-v3",
        hardware="b200",
        engine="sglang-2026h1",
        precision=FP8_KV8,
        place=Placement(tp=8, ep=1),
        measured=0.0,
        input_tokens=8192,
        source=_IX,
    )
    tp = {n: Placement(tp=n, ep=1) for n in (1, 2, 4, 8)}
    tep = {n: Placement(tp=n, ep=n) for n in (4, 8)}
    sglang = (
        ("DSV3 B200 fp8 TP4", "deepseek-v3", "b200", FP8_KV8, tp[4], ((4, 11.535), (16, 22.255), (32, 34.112))),
        ("DSV3 B200 fp8 TP8", "deepseek-v3", "b200", FP8_KV8, tp[8], ((4, 9.607), (16, 14.758), (64, 38.568))),
        ("DSV3 H200 fp8 TP8", "deepseek-v3", "h200", FP8, tp[8], ((4, 11.268), (16, 20.413), (64, 50.244))),
        ("DSV3 B200 fp4 TP4 EP4", "deepseek-v3", "b200", NVFP4, tep[4], ((4, 9.152), (8, 11.620), (64, 31.042))),
        ("DSV3 B300 fp8 TP8", "deepseek-v3", "b300", FP8_KV8, tp[8], ((4, 13.978),)),
        ("Qwen3.5 B200 fp4 TP4", "qwen3.5-397b-a17b", "b200", NVFP4_BF16SHARED, tp[4],
         ((4, 7.006), (16, 10.518), (64, 20.412))),
        ("Qwen3.5 H200 fp8 TP8 EP8", "qwen3.5-397b-a17b", "h200", FP8, tep[8],
         ((4, 10.340), (16, 17.398), (64, 38.222))),
        ("GLM-5 B200 fp8 TP8", "glm-5", "b200", FP8_KV8, tp[8], ((4, 18.521), (16, 27.341), (64, 51.865))),
        ("GLM-5 B200 fp4 TP8", "glm-5", "b200", NVFP4, tp[8], ((4, 16.215), (16, 25.537), (64, 57.268))),
        ("GLM-5 H200 fp8 TP8", "glm-5", "h200", FP8, tp[8], ((4, 20.733), (16, 35.551), (64, 63.342))),
    )  # fmt: skip
    vllm = (
        ("K2.5 B200 fp4 TP4 EP4", "kimi-k2", "b200", NVFP4, tep[4], ((4, 8.834), (16, 15.185), (64, 33.115))),
        ("K2.5 H200 int4 TP8", "kimi-k2", "h200", INT4, tp[8], ((4, 11.807), (16, 21.916), (64, 59.823))),
        ("gpt-oss H200 TP1", "gpt-oss-120b", "h200", MXFP4_HOPPER, tp[1], ((4, 7.081), (16, 15.746), (64, 41.825))),
        ("gpt-oss B200 TP1", "gpt-oss-120b", "b200", MXFP4, tp[1], ((4, 3.734), (16, 6.607), (64, 14.241))),
        ("gpt-oss H100 TP2", "gpt-oss-120b", "h100", MXFP4_HOPPER, tp[2], ((4, 5.603), (16, 10.780), (64, 26.315))),
        ("MiniMax B200 fp8 TP2", "minimax-m2.5", "b200", FP8_KV8, tp[2], ((4, 9.899), (16, 15.573), (64, 31.539))),
        ("MiniMax B300 fp8 TP2", "minimax-m2.5", "b300", FP8_KV8, tp[2], ((4, 9.904), (16, 15.882), (64, 31.052))),
        ("MiniMax H200 fp8 TP4", "minimax-m2.5", "h200", FP8, tp[4], ((4, 13.353), (16, 19.931), (64, 44.778))),
    )
    for engine, table in (("sglang-2026h1", sglang), ("vllm-2026h1", vllm)):
        for name, model, hardware, precision, place, points in table:
            bench.served(
                replace(
                    base, name=name, model=model, hardware=hardware, engine=engine, precision=precision, place=place
                ),
                *points,
            )
    old = replace(base, engine="vllm-2026h1", model="qwen3-235b-a22b", hardware="h200", precision=FP8, place=tp[4])
    for tokens, concurrency, ms in ((1000, 48, 36.25), (4000, 24, 34.35), (8000, 16, 34.41)):
        bench.served(
            replace(old, name=f"Qwen3-235B H200 fp8 TP4 {tokens // 1000}k/1k", input_tokens=tokens,
                    output_tokens=1000, spread_ratio=1.0, assumed="vLLM 0.12, months older than its engine here"),
            (concurrency, ms),
        )  # fmt: skip


def measured_rows() -> tuple[Row, ...]:
    """Return all rows, in the order of their sources."""
    bench = _Bench()
    for part in (_wide, _rack, _long, _k3, _served):
        part(bench)
    return tuple(bench.rows)
