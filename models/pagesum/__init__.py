"""PageSum: pages encoded and decoded alone, mixed by confidence (papers: PageSum)."""
