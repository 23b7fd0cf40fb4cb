"""Draw requests from ServeGen client parameters: a folder of `chunk-N-trace.csv` and `chunk-N-dataset.json`.

Trace lines have no header: window start [s, steps of 600 s], rate [requests/s], CV of the gaps, "Gamma" or "Weibull"
or nothing, shape, scale [s]. The data set maps window starts [s, steps of 6 h] to {"input_tokens": "{length:
probability}", "output_tokens": "{...}"}, the distributions written as strings. A window of rate 0 has no pattern and
sends nothing.
Every request of `horizon_s` is drawn here, by a hash of (seed, client, number). No block ids. Source:
github.com/alibaba/ServeGen (Xiang et al., 2025).
"""

from __future__ import annotations

import ast
import csv
import math
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import numpy as np
import orjson
from numpy.typing import NDArray

from orchestrator.rng import stream_key, uniform_block
from scenarios.errors import UserError
from scenarios.workloads import arrivals
from scenarios.workloads.corpus import Conversation, Corpus, StreamBuilder
from scenarios.workloads.readers import files
from scenarios.workloads.readers.rows import ReadOptions, Sample
from scenarios.workloads.repairs import Repairs, Skip

FORMAT = "servegen"
WINDOW_S = 600.0


def mismatch(sample: Sample) -> str:
    """Return why this is not a ServeGen folder, '' when it is."""
    return "" if sample.header == ("servegen",) else "it is not a folder with `chunk-N-trace.csv` files"


def read(path: Path, options: ReadOptions) -> Corpus:
    """Draw the requests of all clients up to `options.horizon_s`."""
    repairs = Repairs(options.on_error)
    requests: list[tuple[float, int, int]] = []
    chunks = sorted(path.glob("chunk-*-trace.csv"))
    for chunk in chunks:
        lengths = chunk.with_name(chunk.name.replace("-trace.csv", "-dataset.json"))
        if not lengths.exists():
            problem = f"missing; {chunk.name} needs its data set beside it"
            rejection = repairs.rejection("client without its data set", f"{lengths}", problem)
            if not isinstance(rejection, Skip):
                raise rejection
            continue
        requests.extend(_client(chunk, lengths, options))
    stream = StreamBuilder("", "independent")
    for t_s, prompt_tokens, output_tokens in sorted(requests):
        stream.add(t_s=t_s, prompt_tokens=prompt_tokens, output_tokens=output_tokens)
    if not len(stream):
        raise UserError(f"{path}: no client sends anything within {options.horizon_s} s")
    repairs.note("generated from parameters", f"{path}", f"seed {options.seed}, {options.horizon_s:g} s")
    conversation = Conversation(name=path.name, block_tokens=64, streams=(stream.build(),), start_s=0.0)
    return Corpus(
        name=path.name,
        format=FORMAT,
        conversations=[conversation],
        scope="none",
        repairs=repairs,
        source_sha256=files.sha256(chunks),
    )


def _client(chunk: Path, lengths: Path, options: ReadOptions) -> Iterator[tuple[float, int, int]]:
    key = stream_key(options.seed, f"servegen.{chunk.name}")
    at = [t for start_s, line in _windows(chunk) if start_s < options.horizon_s for t in _arrivals(line, start_s, key)]
    at = [t for t in at if t < options.horizon_s]
    tables = _tables(lengths)
    u, v = uniform_block(key, 0, len(at), 1), uniform_block(key, 0, len(at), 2)
    for k, t in enumerate(at):
        table = tables[max((w for w in tables if w <= t), default=min(tables))]
        yield t, max(1, _draw(table["input_tokens"], u[k])), max(1, _draw(table["output_tokens"], v[k]))


def _windows(chunk: Path) -> Iterator[tuple[float, list[str]]]:
    text = (line.decode("utf-8-sig") for _, line in files.lines(chunk))
    for number, line in enumerate(csv.reader(text), 1):
        try:
            yield float(line[0]), line
        except (ValueError, IndexError):
            raise UserError(
                f"{chunk}:{number}: {line!r}; start, rate, CV, pattern, shape, scale were expected"
            ) from None


def _arrivals(line: list[str], start_s: float, key: int) -> list[float]:
    """Return the arrivals of one window: renewal gaps of its pattern from its start."""
    rate = float(line[1])
    if rate <= 0.0 or len(line) < 4 or not line[3]:
        return []
    stream = stream_key(key, f"window {start_s}")
    if line[3] == "Gamma":
        gaps = arrivals.unit_gaps(stream, float(line[4]) ** -0.5)
        times = arrivals.times(arrivals.constant(rate), gaps)
        return [start_s + t for t in takewhile(lambda t: t < WINDOW_S, times)]
    if line[3] != "Weibull":
        raise UserError(f"window {start_s}: pattern {line[3]!r}; Gamma or Weibull was expected")
    shape, t = float(line[4]), 0.0
    out: list[float] = []
    mean = math.gamma(1.0 + 1.0 / shape)
    while True:
        for u in uniform_block(stream, len(out), arrivals.BLOCK):
            t += (-np.log(u)) ** (1.0 / shape) / mean / rate
            if t >= WINDOW_S:
                return out
            out.append(start_s + float(t))


def _tables(lengths: Path) -> dict[float, dict[str, tuple[NDArray[np.int64], NDArray[np.float64]]]]:
    try:
        windows = orjson.loads(lengths.read_bytes())
        out = {}
        for start, distributions in windows.items():
            if "input_tokens" not in distributions and {"text_tokens", "image_tokens"} & set(distributions):
                raise UserError(f"{lengths}: a multimodal pool (texts and images); pools of texts alone are read")
            table = {}
            for key in ("input_tokens", "output_tokens"):
                pdf = (
                    ast.literal_eval(distributions[key]) if isinstance(distributions[key], str) else distributions[key]
                )
                values = np.array([int(float(k)) for k in pdf], dtype=np.int64)
                table[key] = values, np.cumsum(np.array(list(pdf.values()), dtype=np.float64))
            out[float(start)] = table
    except (orjson.JSONDecodeError, KeyError, ValueError, SyntaxError, AttributeError) as error:
        raise UserError(f"{lengths}: not a map of windows to length distributions ({error})") from None
    if not out:
        raise UserError(f"{lengths}: empty; at least one window was expected")
    return out


def _draw(table: tuple[NDArray[np.int64], NDArray[np.float64]], u: float) -> int:
    values, cumulative = table
    return int(values[min(int(np.searchsorted(cumulative, u * cumulative[-1])), len(values) - 1)])
