"""Tenants never see one another, and nobody sees a secret."""
