"""Keeps plugin answers from pod to pod, and asks again only about rows that changed."""
