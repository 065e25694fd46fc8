"""Shares GPUs among pods: what pods ask for, what each device has left, and how fragmented that is.

Amounts are thousandths of one device (milli). Everything here is plain arithmetic on lists and arrays, for plugins that
filter, score or learn; `devices.GpuDevices` keeps the account of a cluster.
"""
