"""The generated dataset that tells systems apart."""
