"""Defines the agents of this package, for `podium extender`."""

from podium.extender.agents import Agent
from podium.kube import Pod

SAFE = Agent(
    name="safe",
    summary="keeps pods off nodes whose measured usage, which varies, may well exceed a threshold",
    predicates={"safe-overload": "SafeOverload"},
    priorities={"safe-overload": "SafeOverload", "safe-balance": "SafeBalance"},
    weights={"SafeOverload": 1},
    variables={"SAFEUTILIZATION": "90", "SAFEPERCENTILE": "30", "SAFEFORECASTWEIGHT": "20"},
)

CONGESTION = Agent(
    name="congestion",
    summary="prefers nodes that are not marked as congested",
    priorities={"congestion": "Congestion"},
    variables={"CONGESTION_FACTOR_MAX": "10"},
)

PIGEON = Agent(
    name="pigeon",
    summary="packs, spreads or consolidates by what the whole cluster would look like",
    priorities={"pigeon-holing": "PigeonHoling"},
    variables={"POLICY_OBJECTIVE": "A_BINPACK", "NUM_RESOURCES": "2"},
)

LOAD = Agent(
    name="load",
    summary="prefers nodes under little pressure, by metrics of Prometheus",
    priorities={"measured-load": "MeasuredLoad"},
    watches=(Pod,),  # what is measured of pods belongs to the nodes they are on
    unready=lambda plugins: plugins["MeasuredLoad"].unready,
    variables={"PROMETHEUS_ADDRESS": "http://prometheus.monitoring:9090"},
)
