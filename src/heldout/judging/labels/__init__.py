"""Labels from preferences: no module here may reach a model."""
