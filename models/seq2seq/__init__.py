"""Seq2seq: the encoder-decoders of Hugging Face's transformers."""
