"""One run, from a command line to a record on disk.

Start with `pipeline.run_point`, which does one run. `plan` turns a command line into checked points: `overrides` checks
what was typed, `compose` merges the YAML files. `record` defines the record of a run, `results` the layout of a results
folder.
"""
