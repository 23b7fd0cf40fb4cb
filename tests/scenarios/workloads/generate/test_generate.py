"""Generated sessions against the published figures and against their definition."""

from __future__ import annotations

import numpy as np
import pytest

from scenarios.errors import UserError
from scenarios.workloads import blocks, derive
from scenarios.workloads.generate import tables
from scenarios.workloads.generate.presets import PRESETS, generate
from scenarios.workloads.generate.tables import PROBABILITIES, Table


@pytest.mark.parametrize("preset", PRESETS)
def test_one_seed_makes_one_corpus_and_more_sessions_begin_with_the_same_ones(preset: str) -> None:
    assert generate(preset, sessions=12, seed=4).digest() == generate(preset, sessions=12, seed=4).digest()
    longer = generate(preset, sessions=15, seed=4)
    longer.conversations = longer.conversations[:12]
    assert (
        longer.digest()
        == generate(preset, sessions=12, seed=4).digest()
        != generate(preset, sessions=12, seed=5).digest()
    )


@pytest.mark.parametrize("preset", PRESETS)
def test_generated_blocks_fit_their_lengths_and_times_run_forwards(preset: str) -> None:
    for conversation in generate(preset, sessions=25, seed=4).conversations:
        for stream in conversation.streams:
            counts = [blocks.count(runs) for runs in stream.all_runs()]
            assert counts == (stream.prompt_tokens // conversation.block_tokens).tolist()
            assert (np.diff(stream.t_s) >= 0).all()
            assert stream.output_tokens.min() >= 1
            assert stream.t_s[0] >= 0.0


def test_a_table_gives_back_its_quantiles_and_its_published_mean() -> None:
    u = (np.arange(200_000) + 0.5) / 200_000
    for table, mean in ((tables.OUTPUT_TOKENS, 440), (tables.THINK_AFTER_TOOL_S, 48.6), (tables.GROWTH_TOKENS, 1_770)):
        drawn = table.draw(u)
        np.testing.assert_allclose(np.quantile(drawn, PROBABILITIES), table.quantiles, rtol=2e-3)
        assert drawn.mean() == pytest.approx(table.mean(), rel=1e-3)
        assert table.mean() == pytest.approx(mean, rel=0.06)


@pytest.mark.slow
def test_generated_agents_come_out_at_the_published_figures() -> None:
    corpus = generate("agentx", sessions=1_000, seed=11)
    prompt, new, first = [], [], []
    first_new = breaks = grown = events = 0
    for conversation, columns in derive.with_cached_tokens(corpus):
        for s, (stream, cached) in enumerate(zip(conversation.streams, columns)):
            fresh = (stream.prompt_tokens - cached).tolist()
            prompt.extend(stream.prompt_tokens.tolist())
            new.extend(fresh)
            if s == 0:
                first.append(int(stream.prompt_tokens[0]))
            first_new += fresh[0]
            runs = stream.all_runs()
            for k in range(1, len(runs)):
                broken = blocks.common(runs[k - 1], runs[k]) < 0.9 * blocks.count(runs[k - 1])
                events += broken
                breaks += fresh[k] * broken
                grown += fresh[k] * (not broken)

    def near(values: list[int], table: Table, most: float) -> None:
        got = np.quantile(values, PROBABILITIES[:-1])
        assert np.abs(np.log(got / np.array(table.quantiles[:-1]))).max() < np.log(most), got

    near(prompt, tables.PROMPT_TOKENS, 1.25)
    near(new, tables.NEW_TOKENS, 1.35)
    near(first, tables.FIRST_PROMPT_TOKENS, 1.20)
    assert np.mean(prompt) == pytest.approx(122_379, rel=0.08)
    assert np.mean(new) == pytest.approx(4_509, rel=0.08)
    assert derive.hit_token_ratio(corpus) == pytest.approx(0.963, abs=0.005)
    total = first_new + breaks + grown
    assert first_new / total == pytest.approx(0.295, abs=0.05)
    assert breaks / total == pytest.approx(0.33, abs=0.06)
    assert events / corpus.requests == pytest.approx(902 / 49_334, rel=0.15)


def test_an_unknown_preset_names_the_nearest() -> None:
    with pytest.raises(UserError, match="did you mean `agentx`"):
        generate("agentix", sessions=1, seed=1)
