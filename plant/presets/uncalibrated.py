"""Accelerators from their data sheets alone: no kernel table was fitted, so shares of peak are those of Blackwell.

Rates are dense. Where a maker states no power, the figure is an assumption and says so. All-in watts outside MI355X
(SemiAnalysis, 2,090) are scaled from TDP as for `plant.presets.hardware`.
"""

from __future__ import annotations

from dataclasses import replace

from plant.model.hardware import Hardware

A100 = Hardware(
    name="a100",
    hbm_bytes=85.9e9,  # 81,920 MiB, as nvidia-smi reports "80 GB"
    hbm_bytes_per_s=2.039e12,
    # No fp8 units: 8- and 4-bit weights are widened and multiplied in bf16.
    flops_per_s=(0.312e15, 0.312e15, 0.312e15),
    scale_up_bytes_per_s=300e9,
    domain=8,
    node=8,
    rack=32,
    nic_bytes_per_s=25e9,
    host_link_bytes_per_s=32e9,
    tdp_w=400,
    all_in_w=780,
    verified=False,
    source="NVIDIA A100 80 GB SXM data sheet; 200 Gb/s NIC per accelerator (DGX A100)",
)
H20 = replace(
    A100,
    name="h20",
    hbm_bytes=96e9,
    hbm_bytes_per_s=4.0e12,
    flops_per_s=(0.148e15, 0.296e15, 0.296e15),
    scale_up_bytes_per_s=450e9,
    nic_bytes_per_s=50e9,
    host_link_bytes_per_s=64e9,
    source="NVIDIA H20 data sheet as published by server makers",
)
L40S = replace(
    A100,
    name="l40s",
    hbm_bytes=48e9,
    hbm_bytes_per_s=0.864e12,
    flops_per_s=(0.362e15, 0.733e15, 0.733e15),
    scale_up_bytes_per_s=32e9,  # PCIe 4.0 x16: it has no NVLink
    tdp_w=350,
    all_in_w=680,
    source="NVIDIA L40S data sheet",
)
MI300X = replace(
    A100,
    name="mi300x",
    hbm_bytes=192e9,
    hbm_bytes_per_s=5.3e12,
    flops_per_s=(1.307e15, 2.615e15, 2.615e15),
    scale_up_bytes_per_s=448e9,
    nic_bytes_per_s=50e9,
    host_link_bytes_per_s=64e9,
    tdp_w=750,
    all_in_w=1420,
    source="AMD Instinct MI300X data sheet; seven Infinity Fabric links of 64 GB/s a direction",
)
MI355X = replace(
    MI300X,
    name="mi355x",
    hbm_bytes=288e9,
    hbm_bytes_per_s=8.0e12,
    flops_per_s=(2.5e15, 5.0e15, 10.0e15),
    scale_up_bytes_per_s=537.6e9,
    tdp_w=1400,
    all_in_w=2090,
    source="AMD Instinct MI355X data sheet; seven links of 76.8 GB/s a direction; SemiAnalysis all-in power",
)
TPU_V7 = replace(
    A100,
    name="tpu-v7",
    hbm_bytes=192e9,
    hbm_bytes_per_s=7.37e12,
    flops_per_s=(2.307e15, 4.614e15, 4.614e15),
    scale_up_bytes_per_s=600e9,
    domain=64,
    node=4,
    rack=64,
    nic_bytes_per_s=12.5e9,
    host_link_bytes_per_s=64e9,
    tdp_w=1000,
    all_in_w=1900,
    source="Google Cloud TPU7x documentation (9.6 Tb/s of ICI a chip, cubes of 64); power is an assumption",
)
TRAINIUM2 = replace(
    A100,
    name="trainium2",
    hbm_bytes=96e9,
    hbm_bytes_per_s=2.9e12,
    flops_per_s=(0.667e15, 1.299e15, 1.299e15),
    scale_up_bytes_per_s=640e9,
    domain=64,
    node=16,
    rack=64,
    tdp_w=500,
    all_in_w=980,
    source="AWS Neuron documentation of Trainium2 (UltraServer of 64 chips); power is an assumption",
)
TRAINIUM3 = replace(
    TRAINIUM2,
    name="trainium3",
    hbm_bytes=144e9,
    hbm_bytes_per_s=4.9e12,
    flops_per_s=(0.671e15, 2.517e15, 2.517e15),
    scale_up_bytes_per_s=1280e9,
    domain=144,
    rack=144,
    nic_bytes_per_s=50e9,
    tdp_w=1000,
    all_in_w=1900,
    source="AWS Neuron documentation of Trainium3 (UltraServer of 144 chips); power is an assumption",
)

UNCALIBRATED = (A100, H20, L40S, MI300X, MI355X, TPU_V7, TRAINIUM2, TRAINIUM3)
