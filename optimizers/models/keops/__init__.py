"""Models without a matrix in memory, by KeOps; they are compiled on first use."""
