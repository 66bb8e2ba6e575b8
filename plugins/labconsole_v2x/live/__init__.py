"""The trial `v2x.live`: stations in processes of their own that send, sign, receive and verify CAMs."""
