"""Tests of the package as it is installed, without the checkout."""
