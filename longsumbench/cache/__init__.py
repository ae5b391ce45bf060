"""The cache of finished stages that runs share, and the locks between the processes that use it.

Start with `artifacts.py`.
"""
