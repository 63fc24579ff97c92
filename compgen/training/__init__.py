"""Training of predictors: configurations, the loop, examples in batches."""
