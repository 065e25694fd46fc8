"""Holds the definitions of the custom resources that the plugins here schedule by, one YAML file each."""
