"""Writers: one module for each format that a terminology can be exported to."""
