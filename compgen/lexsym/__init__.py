"""Lexical symmetries (LexSym: Akyürek and Andreas, ACL 2023): lexicons with types, and words exchanged by them."""
