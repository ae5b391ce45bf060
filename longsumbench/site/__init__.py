"""Results for people and tools elsewhere: other formats, and models on the Hugging Face hub."""
