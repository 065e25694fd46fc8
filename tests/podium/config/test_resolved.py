import json
from random import Random

import pytest
import yaml

from podium.config import default_config, load_config, to_dict, to_yaml
from tests.podium.config.cases import ACCEPTED, random_profile
from tests.podium.config.stand_ins import REGISTRY, config_text


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_is_written_loads_as_the_same_configuration(name: str) -> None:
    config = load_config(config_text(ACCEPTED[name]), "f", REGISTRY).config
    again = load_config(to_yaml(config), "f", REGISTRY)
    assert again.config == config
    assert json.loads(json.dumps(to_dict(config))) == yaml.safe_load(to_yaml(config))


@pytest.mark.parametrize("seed", range(20))
def test_merged_plugin_sets_survive_being_written_and_merged_again(seed: int) -> None:
    text = config_text(yaml.safe_dump({"profiles": [random_profile(Random(seed), 0)]}))
    config = load_config(text, "f", REGISTRY).config
    assert load_config(to_yaml(config), "f", REGISTRY).config == config


def test_the_default_configuration_is_written_out_in_full() -> None:
    written = to_dict(default_config(REGISTRY))
    assert written["apiVersion"] == "kubescheduler.config.k8s.io/v1"
    assert written["leaderElection"]["leaseDuration"] == "15s"
    assert "percentageOfNodesToScore" not in written
    (profile,) = written["profiles"]
    assert profile["plugins"]["multiPoint"]["enabled"][4] == {"name": "TaintToleration", "weight": 3}
    assert profile["pluginConfig"][0] == {
        "name": "DefaultPreemption",
        "args": {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "DefaultPreemptionArgs",
            "minCandidateNodesPercentage": 10,
            "minCandidateNodesAbsolute": 100,
        },
    }


def test_certificates_are_written_as_base64() -> None:
    config = load_config(config_text("extenders: [{urlPrefix: a, tlsConfig: {caData: YQ==}}]\n"), "f", REGISTRY).config
    assert to_dict(config)["extenders"][0]["tlsConfig"]["caData"] == "YQ=="
