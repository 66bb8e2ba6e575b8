"""The page of use cases: a check list that fills itself."""
