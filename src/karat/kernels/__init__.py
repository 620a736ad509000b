"""Numerical kernels: one function per formula, arrays in and arrays or numbers out."""
