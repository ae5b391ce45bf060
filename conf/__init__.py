"""The configuration groups: YAML files that list departures from the dataclasses' defaults."""
