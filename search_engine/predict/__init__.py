"""Analytic predictions; pure functions. A prediction is never shown as a measurement."""
