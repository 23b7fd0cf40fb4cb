"""All shipped scenarios at once: `members` says which, `execute` runs them on all cores."""
