"""A report on runs: what it contains, its tables and charts, and the PDF, signed if asked for."""
