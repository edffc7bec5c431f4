"""Tests of single parts, without a process of their own."""
