"""Everything that makes speech; the only place where torch may be imported."""
