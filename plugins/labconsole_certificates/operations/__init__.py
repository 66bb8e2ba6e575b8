"""Operations on the certificate database, each a function for other code and a command for terminal and window."""
