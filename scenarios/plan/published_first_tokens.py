"""Milliseconds to the first token of the public serving rows in `published`, from the same file and loads."""

from __future__ import annotations

# Mean over the requests of each load; by the name of the row whose time per token stands in `published`.
FIRST_TOKEN_MS: dict[str, tuple[float, ...]] = {
    "DSV3 B200 fp8 TP4": (585.9, 997.3, 1479.8),
    "DSV3 B200 fp8 TP8": (478.6, 1092.3, 2664.2),
    "DSV3 H200 fp8 TP8": (446.9, 699.9, 2278.8),
    "DSV3 B200 fp4 TP4 EP4": (317.1, 369.3, 1584.0),
    "DSV3 B300 fp8 TP8": (2049.7,),
    "Qwen3.5 B200 fp4 TP4": (378.5, 585.4, 1124.8),
    "Qwen3.5 H200 fp8 TP8 EP8": (424.6, 629.1, 1224.5),
    "GLM-5 B200 fp8 TP8": (658.9, 939.8, 2021.8),
    "GLM-5 B200 fp4 TP8": (750.3, 1077.3, 2375.5),
    "GLM-5 H200 fp8 TP8": (1102.1, 1550.1, 42_569.8),
    "K2.5 B200 fp4 TP4 EP4": (232.1, 401.5, 1321.3),
    "K2.5 H200 int4 TP8": (512.5, 846.5, 1958.3),
    "gpt-oss H200 TP1": (407.6, 660.7, 1530.9),
    "gpt-oss B200 TP1": (115.8, 179.5, 380.8),
    "gpt-oss H100 TP2": (264.7, 410.8, 975.6),
    "MiniMax B200 fp8 TP2": (247.3, 384.5, 831.2),
    "MiniMax B300 fp8 TP2": (227.7, 364.9, 750.4),
    "MiniMax H200 fp8 TP4": (319.1, 549.9, 1257.1),
    "Qwen3-235B H200 fp8 TP4 1k/1k": (175.9,),
    "Qwen3-235B H200 fp8 TP4 4k/1k": (395.1,),
    "Qwen3-235B H200 fp8 TP4 8k/1k": (716.9,),
}
