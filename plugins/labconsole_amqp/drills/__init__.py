"""Drills: certificates are rotated and revoked while messages flow."""
