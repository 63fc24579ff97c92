"""Drawing millions of samples: batches, filters, votes, and files that can be resumed."""
