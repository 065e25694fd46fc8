"""Podium behind a stock kube-scheduler: plugins as scheduler extenders, over HTTP.

kube-scheduler asks which of the nodes it has left will do (filter), which are best (prioritize), which victims are
worth evicting (preempt), and may leave binding to us (bind). An agent is a set of plugins under one name; every
decision is the plugin's own, made by the runtime that the engine uses.
"""
