"""The OVA of a root file system: disk, descriptor, manifest, archive. It runs in the container `ova-tools`."""
