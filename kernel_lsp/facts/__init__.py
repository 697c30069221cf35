"""What is known about open kernels without a GPU: asked of the facts host, kept by unit."""
