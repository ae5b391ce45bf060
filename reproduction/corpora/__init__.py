"""Datasets of which only private releases exist: WikiSum and Search2Wiki."""
