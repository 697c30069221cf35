"""Where candidates come from: rewrite rules and configurations."""
