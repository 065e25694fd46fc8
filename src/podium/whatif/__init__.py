"""Answers "what if": a cluster on which changes are tried and taken back, and the questions asked of it.

    sandbox      the cluster, with fork, commit and revert
    changes      what a question changes first: nodes that come, pods that go, any field
    fit          would these pods fit, and where
    capacity     how many pods of a template fit
    drain        what becomes of the pods of nodes that are drained
    compare      what another configuration would decide
    purchase     the cheapest nodes that place every pod

Everything takes plain objects and gives plain records; commands, the dashboard and `podium mcp` print them.
"""
