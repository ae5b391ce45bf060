"""Parts of networks that two systems or more share."""
