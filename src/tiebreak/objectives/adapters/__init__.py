"""Objectives that are made of users' functions: Python, JAX, PyTorch, and streams of samples."""
