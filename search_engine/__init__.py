"""Search engine for GPU kernels: kernel model, rewrite rules, evaluation ladder, tree search."""
