"""The page's own routes, a module for each area."""
