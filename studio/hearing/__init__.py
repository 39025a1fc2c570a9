"""What the studio hears in a take: when each of its words is said."""
