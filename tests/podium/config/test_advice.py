import pytest

from podium.config import ConfigError, load_config
from tests.podium.config.stand_ins import REGISTRY, config_text


def score(entry: str, key: str = "score") -> str:
    return f"profiles:\n- plugins:\n    {key}:\n      enabled:\n      - {entry}\n"


@pytest.mark.parametrize(
    ("body", "warnings"),
    [
        (score("{name: ImageLocality, weight: 5}"), []),
        (
            score("{name: ImageLocality, weight: 0}"),
            [
                "f:7: profiles[0].plugins.score.enabled[0].weight: a weight of 0 counts as 1 "
                "(to switch ImageLocality's score off, disable it under score)"
            ],
        ),
        (
            score("{name: ImageLocality, weight: 0}", "multiPoint"),
            [
                "f:7: profiles[0].plugins.multiPoint.enabled[0].weight: a weight of 0 counts as 1 "
                "(to switch ImageLocality's score off, disable it under score)"
            ],
        ),
        (score("{name: NodeName, weight: 0}", "multiPoint"), []),
        (
            score("{name: ImageLocality, weight: 1000000000}"),
            [
                "f:7: profiles[0].plugins.score.enabled[0].weight: a weight of 1000000000 leaves every other score "
                "without effect (weights are usually 1 to 10)"
            ],
        ),
        (
            score("{name: NodeName, weight: 5}", "filter"),
            [
                "f:7: profiles[0].plugins.filter.enabled[0].weight: a weight has no effect at filter "
                "(weights count under score and multiPoint)"
            ],
        ),
        (
            "profiles:\n- plugins:\n    score:\n      disabled:\n      - name: ImageLocalty\n      - name: '*'\n",
            [
                'f:7: profiles[0].plugins.score.disabled[0]: no plugin is called "ImageLocalty", so nothing is '
                "disabled (did you mean ImageLocality?)"
            ],
        ),
        (
            "profiles:\n- pluginConfig:\n  - name: DefaultPremption\n    args: {a: 1}\n",
            [
                'f:5: profiles[0].pluginConfig[0]: no plugin is called "DefaultPremption", so its arguments are '
                "ignored (did you mean DefaultPreemption?)"
            ],
        ),
        (
            "profiles:\n- pluginConfig:\n  - name: NodeName\n    args: {a: 1}\n  - name: NodePorts\n    args: {}\n",
            ["f:6: profiles[0].pluginConfig[0].args: NodeName takes no arguments; these are ignored"],
        ),
        ("---\nother: document\n", ["f:1: only the first document is read; another begins on line 4"]),
    ],
)
def test_what_is_legal_but_probably_not_meant_is_a_warning(body: str, warnings: list[str]) -> None:
    assert [str(warning) for warning in load_config(config_text(body), "f", REGISTRY).warnings] == warnings


def test_a_weight_of_a_billion_is_used_as_given() -> None:
    text = config_text(score("{name: ImageLocality, weight: 1000000000}"))
    assert load_config(text, "f", REGISTRY).config.profiles[0].weights["ImageLocality"] == 10**9


def test_a_negative_weight_is_refused() -> None:
    with pytest.raises(ConfigError) as refused:
        load_config(config_text(score("{name: ImageLocality, weight: -1}")), "f", REGISTRY)
    assert str(refused.value) == (
        "f:7: profiles[0].plugins.score.enabled[0].weight: Invalid value: -1: must not be negative "
        "(write a weight of 1 or more)"
    )
