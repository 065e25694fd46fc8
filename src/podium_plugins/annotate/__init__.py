"""Writes measured use and allocation onto nodes as annotations."""
