"""The trial `v2x.use-cases`: the source's check list of functional and attack use cases, which runs itself."""
