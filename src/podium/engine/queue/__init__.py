"""Keeps the pods that want a node, and decides when each is tried.

`scheduling_queue` is what the scheduler uses; active, backoff and unschedulable pods each have their own module.
"""
