"""A modelled plant as an OpenAI endpoint: what clients get back."""

from __future__ import annotations

import asyncio
from pathlib import Path

import openai
import pytest

from scenarios.serve.service import Service
from scenarios.serve.streams import StreamingPlant
from tests.scenarios.serve.kit import chat, chunks, client, run, scenario, serving


def openai_client(service: Service) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{service.port}/v1", api_key="x", max_retries=0)


def test_the_openai_client_reads_whole_answers_and_streams(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path / "run") as service, openai_client(service) as ask:
            assert [model.id async for model in ask.models.list()] == ["sim-model"]
            completion = await ask.chat.completions.create(
                model="sim-model", messages=[{"role": "user", "content": "one two three"}], max_completion_tokens=7
            )
            assert completion.usage is not None
            assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (3, 7)
            assert len((completion.choices[0].message.content or "").split()) == 7
            assert completion.choices[0].finish_reason == "length"
            texts, usage = [], None
            stream = await ask.completions.create(
                model="sim-model", prompt="a b", max_tokens=4, stream=True, stream_options={"include_usage": True}
            )
            async for chunk in stream:
                texts += [choice.text for choice in chunk.choices]
                usage = chunk.usage or usage
            assert len(texts) == 4
            assert len("".join(texts).split()) == 4
            assert usage is not None
            assert usage.total_tokens == 6

    run(main)


def test_a_stream_has_one_chunk_a_token_then_usage_then_done(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path / "run") as service, client(service) as http:
            fields = {"stream": True, "max_tokens": 6, "ignore_eos": True, "stream_options": {"include_usage": True}}
            answer = await http.post(
                "/v1/chat/completions", json=chat("hello there", **fields, model="", colour="blue")
            )
        assert answer.headers["content-type"].startswith("text/event-stream")
        role, *tokens, usage = chunks(answer.content)
        assert role["choices"][0]["delta"] == {"role": "assistant", "content": ""}
        assert {chunk["object"] for chunk in (role, *tokens, usage)} == {"chat.completion.chunk"}
        assert {chunk["model"] for chunk in (role, *tokens, usage)} == {"sim-model"}
        assert [chunk["choices"][0]["finish_reason"] for chunk in tokens] == [None] * 5 + ["length"]
        assert len("".join(chunk["choices"][0]["delta"]["content"] for chunk in tokens).split()) == 6
        assert usage["choices"] == []
        assert usage["usage"] == {
            "prompt_tokens": 2,
            "completion_tokens": 6,
            "total_tokens": 8,
            "prompt_tokens_details": {"cached_tokens": 0},
        }

    run(main)


@pytest.mark.parametrize("kind", ["cluster", "tandem"])
def test_tokens_come_one_after_another_and_none_before_the_model_makes_it(tmp_path: Path, kind: str) -> None:
    plant = {"kind": "tandem", "slots": 2, "dead_time_s": 0.1, "residence": {"shape": "fixed", "mean_s": 0.3}}
    stated = scenario() if kind == "cluster" else scenario(plant=plant)
    first_s, token_s = (0.01, 0.01) if kind == "cluster" else (0.1, 0.3 / 29)

    async def main() -> None:
        async with serving(tmp_path / "run", stated, rate=1.0) as service, client(service) as http:
            loop, came = asyncio.get_running_loop(), []
            began_s = loop.time()
            async with http.stream(
                "POST", "/v1/chat/completions", json=chat("hello", stream=True, max_tokens=30)
            ) as body:
                async for line in body.aiter_lines():
                    if '"content":" ' in line or ('"content":"' in line and '"role"' not in line):
                        came.append(loop.time() - began_s)
        assert len(came) == 30
        assert all(at_s >= first_s + k * token_s - 1e-3 for k, at_s in enumerate(came))

    run(main)


def test_a_prompt_that_begins_like_an_earlier_one_finds_its_blocks_cached(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path / "run") as service, client(service) as http:

            async def cached(text: str) -> int:
                answer = await http.post("/v1/chat/completions", json=chat(text, max_tokens=2))
                cached_tokens: int = answer.json()["usage"]["prompt_tokens_details"]["cached_tokens"]
                return cached_tokens

            words = [f"w{k}" for k in range(21)]
            assert await cached(" ".join(words)) == 0
            assert await cached(" ".join(words)) == 20  # whole blocks of four
            assert await cached(" ".join([*words[:10], "other", *words[11:]])) == 8
            assert await cached(" ".join(["new", *words[1:]])) == 0
            page = (await http.get("/metrics")).text
        assert 'vllm:prefix_cache_hits_total{model_name="sim-model"} 28.0' in page
        assert 'vllm:prefix_cache_queries_total{model_name="sim-model"} 84.0' in page

    run(main)


def test_all_streams_of_a_burst_are_whole_and_share_the_timer_of_their_worker(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path / "run") as service, client(service) as http:
            asks = [
                http.post("/v1/completions", json={"prompt": "a b c", "max_tokens": 40, "stream": True})
                for _ in range(24)
            ]
            answers = await asyncio.gather(*asks)
            ledger = service.orchestrator.ledger
            assert (ledger.arrived, ledger.retired) == (24, 24)
            ledger.check()
            plant = service.orchestrator.plant
            assert isinstance(plant, StreamingPlant)
            assert plant.ticks < 24 * 40  # one timer a step of a batch, not one a token
        assert [len(chunks(answer.content)) for answer in answers] == [40] * 24

    run(main)
