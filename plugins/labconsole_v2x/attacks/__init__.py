"""The trial `v2x.attack`: attackers in processes of their own, and a live receiver that must reject what they send."""
