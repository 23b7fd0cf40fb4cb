"""Serving software by name and date: the launch cost that it leaves on the critical path.

The spread between engines is larger than that between models: the same K3 moved from about 17 to 8.5 ms a token in
five weeks. `launch_ratio` of the spring-2026 engines is the one number each that minimises the mean absolute error on
the public single-worker rows of aiconfigurator 0.12.0 (`systems/silicon_sample.csv`), all configurations of this
project's validation table left out. So are the two numbers of a first token, on the 1,572 rows with up to 64 requests
in flight (least mean absolute log error; intervals by resampling configurations): the median error over
all rows was 63 %; with each model held out it is 38 % for SGLang (485 rows), 22 % for vLLM (829) and 58 % for
TensorRT-LLM (258), which has two models there; pooled 30.5 %, bias +11 %.
Scalars of two-batch overlap come from DeepSeek's profile-data and SGLang's 2025 deployment notes.
"""

from __future__ import annotations

from dataclasses import replace

from plant.model.hardware import Engine

WIDE_2025 = Engine(
    name="wide-ep-2025",
    launch_ratio=1.0,
    two_batch_overlap=True,
    source="DeepSeek profile-data; LMSYS blog 2025-05-05 and 2025-07-20",
)
RACK_2025 = replace(
    WIDE_2025, name="rack-2025", two_batch_overlap=False, source="LMSYS blog 2025-09-25; vLLM 2026-02-03"
)
SGLANG_2026H1 = Engine(
    name="sglang-2026h1",
    launch_ratio=1.3,
    step_s=0.5e-3,
    first_token_fixed_s=0.24,
    first_token_ratio=1.95,
    first_token_fixed_interval_s=(0.18, 0.30),
    first_token_ratio_interval=(1.6, 3.3),
    source="SGLang 0.5.9, March-April 2026",
)
VLLM_2026H1 = Engine(
    name="vllm-2026h1",
    launch_ratio=1.0,
    step_s=0.5e-3,
    first_token_fixed_s=0.02,
    first_token_ratio=1.8,
    first_token_fixed_interval_s=(0.01, 0.04),
    first_token_ratio_interval=(1.6, 1.95),
    source="vLLM 0.15-0.19, March-April 2026",
)
# Without DeepSeek, whose rows since January 2026 have multi-token prediction on: 258 rows, median error of a token's
# time 18 %, bias -3 %.
TRTLLM_2026H1 = Engine(
    name="trtllm-2026h1",
    launch_ratio=0.7,
    step_s=0.5e-3,
    first_token_fixed_s=0.05,
    first_token_ratio=2.05,
    first_token_fixed_interval_s=(0.0, 0.13),
    first_token_ratio_interval=(1.2, 3.2),
    source="TensorRT-LLM 1.0-1.2, gpt-oss-120b and Qwen3-235B",
)
# SGLang's day-0 K3: small collectives between trays over NCCL, fused KDA decode for eight tensor ranks only
# (sgl-project/sglang pull request 32624), and the Triton chunk kernel for fills (340 + 49 ns a token and layer where
# FlashKDA and its convolution take 135: aiconfigurator 0.12.0, kda tables of GB200).
SGLANG_K3_DAY0 = replace(
    SGLANG_2026H1,
    name="sglang-k3-day0",
    fabric_all_reduce=False,
    linear_fill_ratio=2.9,
    first_token_fixed_s=0.0,
    first_token_ratio=1.0,
    first_token_fixed_interval_s=None,
    first_token_ratio_interval=None,
    source="sgl-project/sglang pull request 32592",
)
# Programmatic dependent launch and fused K3 kernels: about half of the launch cost of kernels timed alone is hidden.
# The single-stream row of pull request 37878 sets the half; its three first tokens come within 12 % with nothing added.
FUSED_2026H2 = Engine(
    name="fused-2026h2", launch_ratio=0.5, step_s=0.3e-3, source="sgl-project/sglang pull request 37878, v0.5.18"
)
# Every kernel alone in a graph, nothing hidden and nothing added: the sum of the published kernel tables.
KERNELS = Engine(name="kernel-tables", launch_ratio=1.0, step_s=0.0, source="aiconfigurator 0.12.0 kernel tables")

ENGINES: dict[str, Engine] = {
    e.name: e
    for e in (
        FUSED_2026H2,
        KERNELS,
        WIDE_2025,
        RACK_2025,
        SGLANG_2026H1,
        VLLM_2026H1,
        TRTLLM_2026H1,
        SGLANG_K3_DAY0,
    )
}
