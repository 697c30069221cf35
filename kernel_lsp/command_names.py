"""Names of the commands: advertised in the answer to ``initialize``, so they import nothing.

``kernel_lsp.commands`` has a command for each.
"""

COMMAND_NAMES = (
    "kernelLsp.optimize",
    "kernelLsp.cancel",
    "kernelLsp.review",
    "kernelLsp.apply",
    "kernelLsp.verify",
    "kernelLsp.details",
    "kernelLsp.ignore",
    "kernelLsp.listing",
    "kernelLsp.declareWorkload",
    "kernelLsp.recordWorkloads",
    "kernelLsp.trustWorkspace",
    "kernelLsp.explain",
    "kernelLsp.report",
)
