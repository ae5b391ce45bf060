"""Work that is done once and kept: locks between processes, artifacts that runs share, access to the hub."""
