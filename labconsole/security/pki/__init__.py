"""The console's certificate database: States, their keys, certificates, requests, CRLs, trust, and the audit list."""
