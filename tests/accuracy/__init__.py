"""Measuring the error of math functions, and where their constants come from."""
