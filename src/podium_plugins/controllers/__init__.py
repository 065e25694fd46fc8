"""Controllers of the custom resources that the plugins here schedule by."""
