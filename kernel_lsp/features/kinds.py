"""Kinds of code actions: advertised in the answer to ``initialize``, so they import nothing."""

REWRITE = "refactor.rewrite.optimizeKernel"
QUICK_FIX = "quickfix"
CANCEL = "source.kernelLsp.cancel"
DETAILS = "source.kernelLsp.details"
LISTING = "source.kernelLsp.listing"
KINDS = (REWRITE, QUICK_FIX, CANCEL, DETAILS, LISTING)
