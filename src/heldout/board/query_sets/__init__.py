"""Query sets before a board opens on them: what they share, how fine a difference they show."""
