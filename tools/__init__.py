"""What a checkout has and no wheel."""
