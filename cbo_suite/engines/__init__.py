"""How a campaign runs its tasks."""
