"""ETADS: a Transformer whose encoder focuses and whose decoder selects what is salient."""
