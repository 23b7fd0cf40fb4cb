"""Accelerators by name. Peaks: NVIDIA data sheets (as collected in aiconfigurator 0.12.0, systems/*.yaml).

Achieved shares: fits to the measured kernel tables of aiconfigurator 0.12.0 (Apache-2.0), DeepEP's README for
all-to-all, FlashKDA's and FlashMLA's READMEs. All-in watts: SemiAnalysis' figures for GB300 (2,120) and VR200 (3,300)
per accelerator; the others are scaled from their TDP with the same ratio and are assumptions.

Host memory and disks of a node: 2 TB and eight NVMe drives of 3.84 TB in NVIDIA's DGX H100, H200, B200 and B300 data
sheets; trays of GB200 and GB300 NVL72 have two Grace CPUs of 480 GB each (17 TB a rack) and four drives. The drives of
a node read about 30 GB/s striped.
"""

from __future__ import annotations

from dataclasses import replace

from plant.model.hardware import Hardware, Launch, Shares
from plant.presets.uncalibrated import UNCALIBRATED

_HOPPER_LAUNCH = Launch(
    gemm_s=3.5e-6,
    all_reduce_s=3.3e-6,
    dispatch_s=10e-6,
    combine_s=10e-6,
    hop_s=3e-6,
    linear_fill_s_per_token=142e-9,
)
_HOPPER = Shares(
    gemm_stream=(0.85, 0.78, 0.78),
    gemm_math=(0.75, 0.58, 0.58),
    expert_stream=0.85,
    expert_math=(0.50, 0.43, 0.43),
    kv_stream=0.85,
    decode_math=0.60,
    fill_math=0.57,
    collective=0.52,
    all_to_all=0.60,
)
# fp8 and fp4 rates are equal on Hopper: it has no fp4 units and `Hardware.peak` falls back to bf16 math.
H100 = Hardware(
    name="h100",
    hbm_bytes=85.5e9,  # "80 GB" are 81,559 MiB, as nvidia-smi reports them
    hbm_bytes_per_s=3.35e12,
    flops_per_s=(0.989e15, 1.979e15, 1.979e15),
    scale_up_bytes_per_s=450e9,
    domain=8,
    node=8,
    rack=32,
    nic_bytes_per_s=50e9,
    host_link_bytes_per_s=64e9,
    tdp_w=700,
    all_in_w=1370,
    static_power_ratio=0.64,  # ML.ENERGY v3, H100
    dynamic_power_ratio=0.8,
    shares=_HOPPER,
    launch=_HOPPER_LAUNCH,
    source="NVIDIA H100 SXM data sheet",
)
H800 = replace(
    H100,
    name="h800",
    scale_up_bytes_per_s=200e9,
    shares=replace(_HOPPER, collective=0.75, all_to_all=0.78),
    source="DeepEP README: about 160 GB/s of NVLink usable",
)
H200 = replace(
    H100,
    name="h200",
    hbm_bytes=150.7e9,  # 143,771 MiB, likewise
    hbm_bytes_per_s=4.8e12,
    shares=replace(_HOPPER, gemm_stream=(0.80, 0.71, 0.71), expert_math=(0.50, 0.46, 0.46), decode_math=0.62),
    source="NVIDIA H200 SXM data sheet",
)
B200 = Hardware(
    name="b200",
    hbm_bytes=192e9,
    hbm_bytes_per_s=7.7e12,
    flops_per_s=(2.25e15, 4.5e15, 9e15),
    scale_up_bytes_per_s=900e9,
    domain=8,
    node=8,
    rack=64,
    nic_bytes_per_s=50e9,
    host_link_bytes_per_s=128e9,
    tdp_w=1000,
    all_in_w=1900,
    source="NVIDIA Blackwell data sheet; 400 Gb/s ConnectX-7 per accelerator",
)
_ULTRA = Shares(gemm_math=(0.72, 0.60, 0.26), expert_math=(0.55, 0.46, 0.34), fill_math=0.62, kv_stream=0.78)
B300 = replace(
    B200,
    name="b300",
    hbm_bytes=288e9,
    hbm_bytes_per_s=7.75e12,
    flops_per_s=(2.25e15, 4.5e15, 14e15),
    nic_bytes_per_s=100e9,
    tdp_w=1100,
    all_in_w=2050,
    shares=_ULTRA,
    source="NVIDIA Blackwell Ultra data sheet; 800 Gb/s ConnectX-8 per accelerator",
)
GB200 = replace(
    B200,
    name="gb200-nvl72",
    hbm_bytes_per_s=8.0e12,
    flops_per_s=(2.5e15, 5e15, 10e15),
    domain=72,
    node=4,
    rack=72,
    host_link_bytes_per_s=450e9,
    host_dram_bytes=960e9,
    ssd_bytes=15.4e12,
    tdp_w=1200,
    all_in_w=1830,
    launch=Launch(elementwise_s=18e-6),
    source="NVIDIA GB200 NVL72 data sheet",
)
GB300 = replace(
    GB200,
    name="gb300-nvl72",
    hbm_bytes=288e9,
    flops_per_s=(2.5e15, 5e15, 15e15),
    nic_bytes_per_s=100e9,
    tdp_w=1400,
    all_in_w=2120,
    shares=replace(_ULTRA, gemm_math=(0.74, 0.60, 0.27), fill_math=0.66),
    source="NVIDIA GB300 NVL72 data sheet; SemiAnalysis all-in power",
)
VR200 = replace(
    GB200,
    name="vr200-nvl72",
    hbm_bytes=288e9,
    hbm_bytes_per_s=20.5e12,
    flops_per_s=(8e15, 17e15, 35e15),
    scale_up_bytes_per_s=1800e9,
    nic_bytes_per_s=200e9,
    host_link_bytes_per_s=900e9,
    host_dram_bytes=1.5e12,  # a tray has two Vera CPUs
    tdp_w=2300,
    all_in_w=3300,
    verified=False,
    source="announcements; FLOP rates disputed between sources, achieved shares assumed as on GB200: unverified",
)

HARDWARE: dict[str, Hardware] = {h.name: h for h in (H100, H200, H800, B200, B300, GB200, GB300, VR200, *UNCALIBRATED)}
