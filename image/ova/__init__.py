"""The OVA of a root file system: disk, descriptor, manifest, archive. Runs in the container `ova-tools`."""
