"""Laws and limits that name what is not there, and steps that take no time, are refused when the file is read."""

from __future__ import annotations

import pytest

from scenarios.errors import UserError
from scenarios.schema.load import load

HPA = '{ kind = "hpa", configuration = "serv", measure = "turns", target = 25, most_workers = 64 }'
NO_TIME = '{ kind = "linear", base_s = 0, per_sequence_s = 0, per_kv_token_s = 0, per_new_token_s = 1 }'


@pytest.mark.parametrize(
    ("name", "setting", "message"),
    [
        (
            "pending_blind",
            f"candidates.0.capacity={HPA}",
            "pending_blind.capacity.configuration: no configuration serv",
        ),
        ("interactive_reserve", 'candidates.1.admission.reserved=["batc"]', "no class batc (did you mean `batch`?)"),
        ("six_remedies", 'candidates.0.reconfigure={reserve="nope"}', "no configuration nope"),
        ("pending_blind", f"plant.configurations.serve.times={NO_TIME}", "times: a step would take no time"),
        (
            "pending_blind",
            'plant.configurations.serve.times={kind="recorded"}',
            "records no server times; play a trace",
        ),
    ],
)
def test_what_is_not_there_is_refused_at_load(name: str, setting: str, message: str) -> None:
    with pytest.raises(UserError) as refused:
        load(name, [setting])
    assert str(refused.value).startswith(f"{name}.toml: ")
    assert message in str(refused.value)
