"""Says what `podium_lab` brings: simulation and training, and the plugins that learn."""

from podium.packages import CommandEntry, ListedPlugin, Package

PACKAGE = Package(
    "podium_lab",
    commands=(
        CommandEntry("simulate", "podium_lab.cli.simulate:simulate", "TRY"),
        CommandEntry("train", "podium_lab.cli.train:train", "LEARN"),
        CommandEntry("evaluate", "podium_lab.cli.evaluate:evaluate", "LEARN"),
        CommandEntry("policy", "podium_lab.cli.policy:app", "LEARN"),
        CommandEntry("suggestions-server", "podium_lab.cli.suggestions_server:suggestions_server", "LEARN"),
        CommandEntry("workload", "podium_lab.cli.workload:app", "MEASURE"),
    ),
    plugins=(
        ListedPlugin(
            "RewardBias",
            "podium_lab.reward:RewardBias",
            "Learning",
            "prefer nodes on which pods of the same type have fared well",
        ),
        ListedPlugin(
            "LearnedScore", "podium_lab.learned:LearnedScore", "Learning", "a policy that was trained for the workload"
        ),
        ListedPlugin(
            "ModelScore",
            "podium_lab.model_score:ModelScore",
            "Learning",
            "ask a model server, an agent, or an ONNX file which node is best",
        ),
        ListedPlugin(
            "OnlineScore",
            "podium_lab.online:OnlineScore",
            "Learning",
            "prefer nodes on which pods are expected to fare well, by the rewards of others",
        ),
    ),
    agents=(
        ("reward", "podium_lab.agents:REWARD"),
        ("learned", "podium_lab.agents:LEARNED"),
        ("online", "podium_lab.agents:ONLINE"),
    ),
    shadow_logs=("podium_lab.cli.policy:show_shadow_log",),
)
