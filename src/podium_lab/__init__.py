"""Where policies are tried and trained: simulation, training, and the plugins that learn."""
