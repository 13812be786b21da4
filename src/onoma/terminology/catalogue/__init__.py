"""Open vocabularies: where they are to be had, and getting them."""
