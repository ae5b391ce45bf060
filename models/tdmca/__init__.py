"""T-DMCA (Liu et al. 2018): a decoder alone with memory-compressed attention."""
