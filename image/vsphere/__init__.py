"""Deploys the OVA to vSphere."""
