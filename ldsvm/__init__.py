"""Low-dimensional nonlinear SVMs trained jointly by the method of auxiliary coordinates."""
