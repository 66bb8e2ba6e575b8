"""The tab of certificates: the tree of authorities, details of the selection, inspected files."""
