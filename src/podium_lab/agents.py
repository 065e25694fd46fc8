"""Defines the agents of this package, for `podium extender`."""

from podium.extender.agents import Agent
from podium.kube import Pod

REWARD = Agent(
    name="reward",
    summary="avoids nodes on which pods of the same type have failed",
    priorities={"rl-priority": "RewardBias"},
)

LEARNED = Agent(
    name="learned",
    summary="scores nodes with shared GPUs by a policy that was trained for the workload",
    priorities={"learned-score": "LearnedScore"},
    watches=(Pod,),  # what nodes have left is counted from their pods
)

ONLINE = Agent(
    name="online",
    summary="learns from rewards which load and room of nodes pods fare well with",
    priorities={"online-score": "OnlineScore"},
    watches=(Pod,),
    unready=lambda plugins: plugins["OnlineScore"].unready,
    variables={"PROMETHEUS_ADDRESS": "http://prometheus.monitoring:9090"},
)
