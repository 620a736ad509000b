"""Procedural demo data: small ray-cast scenes with exact ground truth, and pretend models that fail on purpose."""
