"""One file for each command of the command line: ``add_arguments(parser)`` and ``run(options)``."""
