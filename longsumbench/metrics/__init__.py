"""Metrics behind one interface: scores per example first, then their mean and its interval."""
