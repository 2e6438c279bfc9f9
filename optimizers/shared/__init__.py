"""What several methods share; each method imports the parts it needs."""
