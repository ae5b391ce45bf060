"""Tables and figures of four papers, made again, and the systems, datasets and analyses that only they need.

A plug-in of `longsumbench` in the same wheel, which the suite knows by its entry points alone (pyproject.toml).
"""
