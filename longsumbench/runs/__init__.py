"""One run, from a command line to a record on disk.

Start with `pipeline.run_point`, which does one run. `plan` turns a command line into checked points, with `compose`.
`record` defines the record of a run, `results` the layout of a results folder; `run_files` writes and checks the other
files of a run.
"""
