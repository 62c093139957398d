"""Pictures of layouts: which logical index is in which physical place."""
