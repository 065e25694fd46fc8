"""One decision at a time: the queue, the scheduling cycle, preemption, and explaining what was decided."""
