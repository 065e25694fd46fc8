"""Measures what controllers were promised (SLO) and what they got (QoS): formulas, accounts, history, figures."""
