"""Who may call what: tokens, certificates and roles (contract "Transport and trust")."""
