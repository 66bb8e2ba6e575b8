"""The tab of certificates: the tree of authorities, the detail of anything, files looked into."""
